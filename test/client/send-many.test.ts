import { describe, expect, it } from "vitest";
import {
  createClient,
  type FencepostError,
  QueueFullError,
  UnexpectedAnswerError,
  UnreachableError,
} from "../../src/client/index.ts";
import { type Answering, type Asked, lost, problem, scriptedFetch } from "../support/scripted-fetch.ts";

const signer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const intent = { signer, payload: { to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", value: 1n } } as const;

function clientOf(answering: Answering, options: { readonly timeoutMs?: number } = {}) {
  const { fetch, asked } = scriptedFetch(answering);
  return { client: createClient({ url: "http://node.example", fetch, ...options }), asked };
}

const itemsIn = (body: Asked["body"]) =>
  (body as { transactions: readonly { readonly requestId: string }[] }).transactions;
const idsOf = (asked: Asked | undefined) => itemsIn(asked?.body ?? null).map(({ requestId }) => requestId);

describe("sendMany", () => {
  const intents = (count: number) => Array.from({ length: count }, () => intent);
  const results = (body: Readonly<Record<string, unknown>> | null, result: (at: number) => object = () => ({})) =>
    Response.json({
      results: itemsIn(body).map(({ requestId }, at) => {
        return {
          status: 202,
          txId: `tx-${requestId}`,
          chainId: 1,
          signer,
          nonce: at,
          state: "ALLOCATED",
          requestId,
          ...result(at),
        };
      }),
    });

  it("returns handles in order, with an error in place of each refused item", async () => {
    const refusal = { status: 422, code: "UNKNOWN_SIGNER", title: "t", type: "t", detail: "nobody" };
    const { client, asked } = clientOf(({ body }) => results(body, (at) => (at === 1 ? refusal : {})));
    const [first, second, third] = await client.sendMany(intents(3));
    expect([first, third]).toMatchObject([{ nonce: 0 }, { nonce: 2 }]);
    const ids = idsOf(asked[0]);
    expect(second).toMatchObject({ name: "UnknownSignerError", code: "UNKNOWN_SIGNER", requestId: ids[1] });
    expect(new Set(ids).size).toBe(3);
    expect(await client.sendMany([])).toEqual([]);
    expect(asked).toHaveLength(1);
  });

  it("repeats only the items that a busy node refused, with the same ids", async () => {
    const busy = { status: 429, code: "QUEUE_FULL", title: "t", type: "t", detail: "full" };
    const { client, asked } = clientOf(({ body }, turn) => results(body, (at) => (turn === 0 && at > 0 ? busy : {})));
    const made = await client.sendMany(intents(3));
    expect(made.map((each) => "txId" in each)).toEqual([true, true, true]);
    const [first, second] = asked.map(idsOf);
    expect(second).toEqual(first?.slice(1));
    const never = clientOf(({ body }) => results(body, () => busy), { timeoutMs: 200 });
    expect((await never.client.sendMany(intents(1)))[0]).toBeInstanceOf(QueueFullError);
  });

  it("splits items that exceed one request, by number or size", async () => {
    const sizes: number[] = [];
    const { client } = clientOf(({ body }) => {
      const count = itemsIn(body).length;
      sizes.push(count);
      return count > 300 ? problem("PAYLOAD_TOO_LARGE", 413) : results(body);
    });
    const made = await client.sendMany(intents(1_100));
    expect(made.filter((each) => "txId" in each)).toHaveLength(1_100);
    expect(sizes).toEqual([1_000, 500, 250, 250, 500, 250, 250, 100]);
  });

  it("returns an error with its own request id for each item without a response", async () => {
    const { client, asked } = clientOf(lost, { timeoutMs: 50 });
    const made = await client.sendMany(intents(2));
    const ids = idsOf(asked[0]);
    expect(made.map((each) => (each as FencepostError).requestId)).toEqual(ids);
    for (const each of made) expect(each).toBeInstanceOf(UnreachableError);
  });

  it("refuses a response with a different number of items than the request", async () => {
    const { client } = clientOf(() => Response.json({ results: [] }));
    expect((await client.sendMany(intents(1)))[0]).toBeInstanceOf(UnexpectedAnswerError);
  });
});
