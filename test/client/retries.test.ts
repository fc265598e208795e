import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../src/client/index.ts";
import {
  type ClientOptions,
  createClient,
  type FencepostError,
  NotLeaderError,
  TimeoutError,
  UnavailableError,
  UnexpectedAnswerError,
  UnreachableError,
} from "../../src/client/index.ts";
import { crowding } from "../support/crowding.ts";
import { type Answering, created, lost, problem, scriptedFetch, silence } from "../support/scripted-fetch.ts";

const A = "http://a.example:3000";
const B = "http://b.example:3000";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const signer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const intent = { signer, payload: { to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", value: 1n } } as const;
const TX_ID = "019a4b7e-0000-7000-8000-000000000001";

function clientOf(answering: Answering, options: Partial<ClientOptions> = {}) {
  const { fetch, asked } = scriptedFetch(answering);
  return { client: createClient({ url: A, apiKey: "s3cret", fetch, ...options }), asked };
}

async function failureOf(call: Promise<unknown>): Promise<FencepostError> {
  return call.then(
    () => expect.fail("it should have failed"),
    (error: FencepostError) => error,
  );
}

/** A fake node that creates one transaction per request id. */
function committing() {
  const made = new Set<unknown>();
  return {
    made,
    commit: (body: Readonly<Record<string, unknown>> | null) => {
      made.add(body?.requestId);
      return created(body);
    },
  };
}

describe("send of the client with retries", () => {
  // protects [The SDK and the library] src/client/index.ts, src/client/failover.ts
  it("reuses the request id after a lost response", async () => {
    const { made, commit } = committing();
    const { client, asked } = clientOf(({ body }, turn) => {
      const answer = commit(body);
      return turn < 2 ? lost() : answer;
    });
    const tx = await client.send(intent);
    expect(asked).toHaveLength(3);
    expect([...made]).toEqual([expect.stringMatching(UUID)]);
    expect(tx.requestId).toBe([...made][0]);
  });

  it("keeps the caller's request id", async () => {
    const { client, asked } = clientOf(({ body }) => created(body));
    await client.send({ ...intent, requestId: "order-42" });
    await client.send(intent);
    await client.send({ ...intent, requestId: undefined } as never);
    const ids = asked.map(({ body }) => body?.requestId);
    expect(ids[0]).toBe("order-42");
    expect(new Set(ids).size).toBe(3);
  });

  it.each([
    ["503 whose outcome is unknown", () => problem("UNAVAILABLE", 503, { outcome: "unknown" })],
    ["503 of a node that is shutting down", () => problem("UNAVAILABLE", 503)],
    ["429 of a full queue", () => problem("QUEUE_FULL", 429)],
    ["502 of a proxy", () => new Response("<html>", { status: 502 })],
    ["504 of a proxy", () => new Response("", { status: 504 })],
  ])("retries with the same request id after %s", async (_, refusal) => {
    const { client, asked } = clientOf(({ body }, turn) => (turn === 0 ? refusal() : created(body)));
    expect(await client.send(intent)).toMatchObject({ nonce: 7 });
    expect(new Set(asked.map(({ body }) => body?.requestId)).size).toBe(1);
    expect(asked).toHaveLength(2);
  });

  it.each([
    ["INVALID_REQUEST", 400],
    ["UNAUTHENTICATED", 401],
    ["REQUEST_ID_REUSED", 409],
    ["SUBMISSION_REJECTED", 422],
    ["INTERNAL", 500],
  ])("does not retry after %s", async (code, status) => {
    const { client, asked } = clientOf(() => problem(code, status));
    expect(await failureOf(client.send({ ...intent, requestId: "r" }))).toMatchObject({ code, status, requestId: "r" });
    expect(asked).toHaveLength(1);
  });

  // protects [The SDK and the library] src/client/failover.ts
  it("waits for Retry-After before the next try", async () => {
    const { client, asked } = clientOf(({ body }, turn) =>
      turn === 0 ? problem("QUEUE_FULL", 429, {}, { "retry-after": "1" }) : created(body),
    );
    const startedMs = performance.now();
    await client.send(intent);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(990);
    expect(asked).toHaveLength(2);
    const hour = clientOf(() => problem("QUOTA_EXCEEDED", 429, { rule: "r" }, { "retry-after": "3600" }));
    const error = await failureOf(hour.client.send(intent));
    expect(error).toMatchObject({ code: "QUOTA_EXCEEDED", retryAfterSeconds: 3600, rule: "r" });
    expect(hour.asked).toHaveLength(1);
  });

  // protects [The SDK and the library] src/client/error-classes.ts
  it("reports its request id in an error, so that the transaction can be looked up", async () => {
    const { client, asked } = clientOf(lost, { timeoutMs: 300 });
    const error = await failureOf(client.send(intent));
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.requestId).toBe(asked[0]?.body?.requestId);
    expect(asked.length).toBeGreaterThan(1);
  });

  it("makes one request to the first address if retries are switched off", async () => {
    const { client, asked } = clientOf(lost, { url: [A, B], repeat: false });
    expect(await failureOf(client.send(intent))).toBeInstanceOf(UnreachableError);
    expect(asked.map(({ base }) => base)).toEqual([A]);
  });
});

describe("the deadline of a client call", () => {
  // protects [The SDK and the library] src/client/deadline.ts
  it("ends an unanswered call with a TimeoutError", async () => {
    const { client } = clientOf(silence, { timeoutMs: 50 });
    const error = await failureOf(client.send({ ...intent, requestId: "r" }));
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error).toMatchObject({ name: "TimeoutError", code: "TIMEOUT", status: 0, requestId: "r" });
    expect(error.message).toContain("/tx after 50 ms");
  });

  it("covers the whole call including retries", async () => {
    const { client, asked } = clientOf(() => problem("UNAVAILABLE", 503));
    const startedMs = performance.now();
    expect(await failureOf(client.get(TX_ID, { timeoutMs: 400 }))).toBeInstanceOf(UnavailableError);
    expect(performance.now() - startedMs).toBeLessThan(5_000 * crowding());
    expect(asked.length).toBeGreaterThan(1);
  });

  it("is extended by the time that a node may hold a long poll of the feed", async () => {
    const { client } = clientOf(silence, { timeoutMs: 50 });
    expect((await failureOf(client.completionsPage({ wait: 0.2 }))).message).toContain("after 250 ms");
  });

  // protects [The SDK and the library] src/client/deadline.ts
  it("does not delay the caller's abort, during a request or between two", async () => {
    const mine = new Error("enough");
    const controller = new AbortController();
    const { client } = clientOf(() => {
      queueMicrotask(() => controller.abort(mine));
      return silence();
    });
    await expect(client.send(intent, { signal: controller.signal })).rejects.toBe(mine);
    const later = new AbortController();
    const refusing = clientOf(() => {
      setTimeout(() => later.abort(mine), 0);
      return problem("UNAVAILABLE", 503, {}, { "retry-after": "20" });
    });
    await expect(refusing.client.send(intent, { signal: later.signal })).rejects.toBe(mine);
    await expect(client.get(TX_ID, { signal: AbortSignal.abort(mine) })).rejects.toBe(mine);
  });
});

describe("a client with several addresses", () => {
  it("tries the addresses in turn", async () => {
    const { client, asked } = clientOf(({ base, body }) => (base === A ? lost() : created(body)), { url: [A, B] });
    await client.send(intent);
    await client.send(intent);
    expect(asked.map(({ base }) => base)).toEqual([A, B, B]);
  });

  it("calls the lane's owner at once if the owner is among the addresses", async () => {
    const { client, asked } = clientOf(
      ({ base, body }) => (base === A ? problem("NOT_LEADER", 409, { ownerUrl: `${B}/` }) : created(body)),
      { url: [A, B] },
    );
    await client.send(intent);
    await client.send({ ...intent, signer: signer.toLowerCase() as Address });
    expect(asked.map(({ base }) => base)).toEqual([A, B, B]);
  });

  it("forgets a remembered owner that no longer responds", async () => {
    const { client, asked } = clientOf(
      ({ base, body }, turn) => {
        if (turn === 0) return problem("NOT_LEADER", 409, { ownerUrl: B });
        return base === B && turn > 1 ? lost() : created(body);
      },
      { url: [A, B] },
    );
    for (const _ of ["told of the owner", "the owner is gone", "it is not asked again"]) await client.send(intent);
    expect(asked.map(({ base }) => base)).toEqual([A, B, B, A, A]);
  });

  // protects [Attacks] src/client/failover.ts, src/client/transport.ts
  it("never calls a lane owner that is not among the addresses", async () => {
    const ownerUrl = "http://evil.example:3000";
    const { client, asked } = clientOf(
      () => problem("NOT_LEADER", 409, { ownerUrl }, { "fencepost-owner": ownerUrl }),
      { url: [A, B] },
    );
    const error = await failureOf(client.send(intent));
    expect(error).toBeInstanceOf(NotLeaderError);
    expect(error.ownerUrl).toBe(ownerUrl);
    expect(new Set(asked.map(({ base }) => base))).toEqual(new Set([A, B]));
    const one = clientOf(() => problem("NOT_LEADER", 409, { ownerUrl }));
    expect(await failureOf(one.client.send(intent))).toBeInstanceOf(NotLeaderError);
    expect(one.asked.map(({ base }) => base)).toEqual([A]);
  });

  it("retries with pauses if two nodes name each other as the owner", async () => {
    const { client, asked } = clientOf(
      ({ base, body }, turn) =>
        turn < 6 ? problem("NOT_LEADER", 409, { ownerUrl: base === A ? B : A }) : created(body),
      { url: [A, B] },
    );
    expect(await client.send(intent)).toMatchObject({ nonce: 7 });
    expect(asked).toHaveLength(7);
  });

  it("cannot be created with an empty list of addresses", () => {
    expect(() => createClient({ url: [] })).toThrow("INVALID_REQUEST: url: must be http(s)");
  });
});

describe("an operator's action through the client", () => {
  const transaction = () => Response.json({ txId: TX_ID, state: "TRACKING", nonce: 7 }, { status: 202 });

  // protects [The SDK and the library] src/client/index.ts
  it("is retried after a lost response with the same idempotency key", async () => {
    const { client, asked } = clientOf((_, turn) => (turn === 0 ? lost() : transaction()));
    await client.cancel(TX_ID, { reason: "r" });
    await client.cancel(TX_ID, { reason: "r" });
    const keys = asked.map(({ headers }) => headers.get("idempotency-key"));
    expect(keys).toEqual([expect.stringMatching(UUID), keys[0], expect.stringMatching(UUID)]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  it.each([
    ["addKey", (client: ReturnType<typeof createClient>) => client.addKey({ name: "k" })],
    ["revokeKey", (client: ReturnType<typeof createClient>) => client.revokeKey("k")],
    ["submitReserved", (client: ReturnType<typeof createClient>) => client.submitReserved("r", "0x02")],
    ["releaseNonce", (client: ReturnType<typeof createClient>) => client.releaseNonce("r")],
    // protects [The SDK and the library] src/client/failover.ts
  ])("that is not idempotent is retried only if nothing was done: %s", async (_, call) => {
    const silent = clientOf(lost);
    expect(await failureOf(call(silent.client))).toBeInstanceOf(UnreachableError);
    expect(silent.asked).toHaveLength(1);
    const unknown = clientOf(() => problem("UNAVAILABLE", 503, { outcome: "unknown" }));
    expect(await failureOf(call(unknown.client))).toBeInstanceOf(UnavailableError);
    expect(unknown.asked).toHaveLength(1);
    const proxy = clientOf(() => new Response("", { status: 503 }));
    expect(await failureOf(call(proxy.client))).toBeInstanceOf(UnexpectedAnswerError);
    expect(proxy.asked).toHaveLength(1);
    const busy = clientOf((__, turn) => (turn === 0 ? problem("UNAVAILABLE", 503) : Response.json({})));
    await call(busy.client);
    expect(busy.asked).toHaveLength(2);
  });
});

describe("the API key of the client", () => {
  const servers: Server[] = [];
  afterEach(() => servers.splice(0).forEach((server) => void server.close()));

  async function listening(answer: Parameters<typeof createServer>[1]): Promise<string> {
    const server = createServer(answer as never);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it.each([301, 302, 307, 308])(
    // protects [Attacks] src/client/failover.ts, src/client/transport.ts
    "is not sent to the target of a redirect %i, on this host or another",
    async (status) => {
      const seen: unknown[] = [];
      const elsewhere = await listening((request, response) => {
        seen.push(request.headers.authorization);
        response.end("{}");
      });
      const url = await listening((_, response) => {
        response.writeHead(status, { location: `${elsewhere}/api/v1/tx` }).end();
      });
      const error = await failureOf(createClient({ url, apiKey: "s3cret" }).send(intent));
      expect(error).toBeInstanceOf(UnexpectedAnswerError);
      expect(error).toMatchObject({ status, detail: expect.stringContaining("redirect") });
      expect(seen).toEqual([]);
    },
  );

  // protects [Attacks] src/client/failover.ts, src/client/transport.ts
  it("is never sent to an owner's URL that is not configured", async () => {
    const seen: unknown[] = [];
    const ownerUrl = await listening((request, response) => {
      seen.push(request.headers.authorization);
      response.end("{}");
    });
    const url = await listening((_, response) => {
      const body = { code: "NOT_LEADER", status: 409, detail: "ask there", ownerUrl };
      response.writeHead(409, { "content-type": "application/problem+json", "fencepost-owner": ownerUrl });
      response.end(JSON.stringify(body));
    });
    expect(await failureOf(createClient({ url, apiKey: "s3cret" }).send(intent))).toMatchObject({ ownerUrl });
    expect(seen).toEqual([]);
  });
});

describe("a response that does not come from a node", () => {
  const saying = (body: unknown) => clientOf(() => Response.json(body)).client;

  it.each([[{}], [[]], ["ok"], [null], [{ ok: true }]])(
    // protects [The SDK and the library] src/client/transport.ts
    "is refused as a transaction although its status is 200: %j",
    async (body) => {
      const error = await failureOf(saying(body).send({ ...intent, requestId: "order-7" }));
      expect(error).toBeInstanceOf(UnexpectedAnswerError);
      expect(error).toMatchObject({ status: 200, requestId: "order-7" });
    },
  );

  // protects [The SDK and the library] src/client/transport.ts
  it("causes an UnexpectedAnswerError in every call", async () => {
    const client = saying([1]);
    const calls = [
      () => client.signers(),
      () => client.nodes(),
      () => client.list(),
      () => client.get(TX_ID),
      () => client.sendBatch([intent]),
      () => client.reserveNonce({ signer }),
      () => client.cancel(TX_ID, { reason: "late" }),
      () => client.suspend(signer, { reason: "late" }),
      () => client.completions().next(),
    ];
    for (const call of calls) expect(await failureOf(call())).toBeInstanceOf(UnexpectedAnswerError);
  });
});
