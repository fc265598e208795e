import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHttpServer, type HttpServer } from "../../src/adapters/http/server.ts";
import type { CompletionsQuery, CreateRequest, TransactionView } from "../../src/application/api.ts";
import type { FencepostApi } from "../../src/application/operations/calls.ts";
import {
  type ClientErrorCode,
  createClient,
  FencepostApiError,
  type FencepostClient,
  type Hash,
} from "../../src/client/index.ts";
import { FencepostError, invalid } from "../../src/domain/errors.ts";
import { SCOPES } from "../../src/domain/keys/principal.ts";
import { httpOptions } from "../support/http-app.ts";
import {
  RECIPIENT_EIP55,
  SIGNER_EIP55,
  sampleCompletion,
  sampleCreated,
  sampleInstance,
  sampleLease,
  sampleSigner,
  sampleTransaction,
  sampleTxId,
} from "../support/scripted-api.ts";

/** Tests the client against a real HTTP server; each test scripts the node behind it. */

const script: { -readonly [Method in keyof FencepostApi]?: FencepostApi[Method] } = {};
const secret = "correct-horse";
let server: HttpServer;
let url: string;
let client: FencepostClient;

beforeAll(async () => {
  const api = new Proxy({} as FencepostApi, {
    get: (_, method) => (script as Record<string | symbol, unknown>)[method],
  });
  server = createHttpServer(httpOptions({}, { api, apiKeys: [{ name: "test", secret, scopes: SCOPES }] }));
  ({ url } = await server.listen("127.0.0.1", 0));
  client = createClient({ url: `${url}/`, apiKey: secret });
});

afterAll(() => server.close());

async function failureOf(call: Promise<unknown>): Promise<FencepostApiError> {
  const error = await call.then(
    () => expect.fail("it should have failed"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FencepostApiError);
  return error as FencepostApiError;
}

const intent = {
  signer: SIGNER_EIP55,
  requestId: "order-42",
  payload: { to: RECIPIENT_EIP55, value: 10n ** 20n },
} as const;

describe("send of the client", () => {
  it("throws INVALID_REQUEST if the intent is missing", async () => {
    const error = await failureOf(client.send(undefined as unknown as typeof intent));
    expect(error).toMatchObject({ code: "INVALID_REQUEST", status: 400 });
  });

  it("writes bigints as decimal digits and returns the transaction", async () => {
    const seen: CreateRequest[] = [];
    script.create = async (request) => {
      seen.push(request);
      return sampleCreated();
    };
    const created = await client.send(intent);
    expect(created).toMatchObject({ txId: sampleTxId(1), nonce: 7, signer: SIGNER_EIP55, state: "ALLOCATED" });
    expect(seen).toEqual([{ ...intent, payload: { to: RECIPIENT_EIP55, value: "100000000000000000000" } }]);
  });

  it("throws a typed error with the problem document", async () => {
    script.create = () => Promise.reject(invalid("payload.to", "is not an address"));
    const error = await failureOf(client.send(intent));
    expect(error).toMatchObject({
      name: "InvalidRequestError",
      code: "INVALID_REQUEST" satisfies ClientErrorCode,
      status: 400,
      detail: "payload.to: is not an address",
      message: "INVALID_REQUEST: payload.to: is not an address",
    });
    expect(error.problem).toMatchObject({ path: "payload.to" });
  });

  it("sends a batch and returns each item's result", async () => {
    script.createBatch = async (requests) =>
      requests.map((_, n) => (n === 1 ? new FencepostError("UNKNOWN_SIGNER", "nobody") : sampleCreated()));
    const results = await client.sendBatch([intent, intent, intent]);
    expect(results.map(({ status }) => status)).toEqual([202, 422, 202]);
    expect(await client.sendBatch([])).toEqual([]);
  });
});

describe("reads of the client", () => {
  it("return a transaction with the requested parts", async () => {
    const asked: unknown[] = [];
    script.transaction = async (...call) => {
      asked.push(call);
      return sampleTransaction();
    };
    expect(await client.get(sampleTxId(1), { include: ["history"] })).toMatchObject({ state: "TRACKING" });
    await client.get(sampleTxId(2), { include: [] });
    expect(asked).toEqual([
      [sampleTxId(1), ["history"]],
      [sampleTxId(2), []],
    ]);
  });

  it("find a transaction by a request id with any characters", async () => {
    const asked: unknown[] = [];
    script.transactionByRequest = async (query) => {
      asked.push(query);
      return sampleTransaction();
    };
    const requestId = "a&b=c+d/é ?#%";
    await client.getByRequest({ signer: SIGNER_EIP55, requestId });
    await client.getByRequest({ pool: "payouts", requestId });
    expect(asked).toEqual([
      { signer: SIGNER_EIP55, requestId },
      { pool: "payouts", requestId },
    ]);
  });

  it("return the explanation why a transaction is not final yet", async () => {
    const since = new Date("2026-01-01T00:00:00Z");
    script.explain = async () => ({
      summary: "it waits",
      causes: [
        { code: "WAITING_BEHIND", text: "it waits", data: { nonce: 1, txHash: null } },
        { code: "STUCK", text: "it sticks", since },
      ],
      blockedBy: { txId: sampleTxId(9), nonce: 1 },
      help: [{ code: "WAIT", text: "wait" }],
      actions: [],
    });
    expect(await client.explain(sampleTxId(1))).toEqual({
      summary: "it waits",
      causes: [
        { code: "WAITING_BEHIND", text: "it waits", data: { nonce: 1, txHash: null } },
        { code: "STUCK", text: "it sticks", since: since.toISOString() },
      ],
      blockedBy: { txId: sampleTxId(9), nonce: 1 },
      help: [{ code: "WAIT", text: "wait" }],
      actions: [],
    });
    expect(await failureOf(client.explain("nonsense"))).toMatchObject({ code: "NOT_FOUND" });
  });

  it("encode ids, so that none can reach another route", async () => {
    expect(await failureOf(client.get("completions?after=1"))).toMatchObject({ code: "NOT_FOUND" });
    expect(await failureOf(client.get("../signers"))).toMatchObject({ code: "NOT_FOUND" });
  });

  it("return transactions page by page", async () => {
    script.transactions = async ({ after }) => ({
      items: [sampleTransaction()],
      next: after === undefined ? "more" : null,
    });
    const first = await client.list({ limit: 1 });
    expect(first.next).toBe("more");
    expect((await client.list({ limit: 1, after: "more" })).next).toBeNull();
  });

  it("return signers, as one list or page by page", async () => {
    const asked: unknown[] = [];
    script.signers = async (query) => {
      asked.push(query);
      return { items: [sampleSigner(), sampleSigner()], next: asked.length === 1 ? "more" : null };
    };
    script.signer = async () => [sampleSigner()];
    expect(await client.signers()).toHaveLength(4);
    expect(asked).toEqual([{ limit: 500 }, { limit: 500, after: "more" }]);
    expect((await client.signersPage({ limit: 2 })).items).toHaveLength(2);
    expect(await client.signer(SIGNER_EIP55)).toMatchObject([{ signer: SIGNER_EIP55, cursor: 8 }]);
  });
});

describe("the client's iteration over completions", () => {
  it("follows `next` and stays in its epoch", async () => {
    const asked: CompletionsQuery[] = [];
    let calls = 0;
    script.completions = async (query) => {
      asked.push(query);
      // The second page is empty because its long poll timed out; the feed continues from the same position.
      const page = [[1, 2], [], [3]][calls++] ?? [];
      return { epoch: 5, items: page.map((seq) => sampleCompletion({ seq })), next: page.at(-1) ?? query.after };
    };
    const seen: number[] = [];
    for await (const { seq, epoch, feedEpoch } of client.completions({ after: 0, limit: 2 })) {
      expect([epoch, feedEpoch]).toEqual([1, 5]);
      seen.push(seq);
      if (seq === 3) break;
    }
    expect(seen).toEqual([1, 2, 3]);
    expect(asked.map(({ after, epoch, limit, waitMs }) => [after, epoch, limit, waitMs])).toEqual([
      [0, undefined, 2, 20_000],
      [2, 5, 2, 20_000],
      [2, 5, 2, 20_000],
    ]);
  });

  it("throws if the epoch changed, with the position to continue at", async () => {
    script.completions = () =>
      Promise.reject(new FencepostError("EPOCH_CHANGED", "new", { epoch: 6, resumeAfter: 90 }));
    const error = await failureOf(client.completions({ epoch: 5 }).next());
    expect(error.code).toBe("EPOCH_CHANGED");
    expect(error.problem).toMatchObject({ epoch: 6, resumeAfter: 90 });
  });

  it("ends with the caller's own reason when aborted during a wait", async () => {
    const controller = new AbortController();
    script.completions = ({ signal }) => {
      queueMicrotask(() => controller.abort(new Error("enough")));
      return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    };
    await expect(client.completions({}, { signal: controller.signal }).next()).rejects.toThrow("enough");
  });
});

describe("waitFor of the client", () => {
  const states = (...views: readonly Partial<TransactionView>[]) => {
    let looks = 0;
    script.transaction = async () => sampleTransaction(views[Math.min(looks++, views.length - 1)]);
    return () => looks;
  };

  it("polls until the transaction is final; STUCK is not final", async () => {
    const looks = states(
      { state: "ALLOCATED", subState: null },
      { state: "STUCK", subState: null },
      { state: "CONFIRMED", subState: null },
    );
    const transaction = await client.waitFor(sampleTxId(1), { pollIntervalMs: 1 });
    expect(transaction.state).toBe("CONFIRMED");
    expect(looks()).toBe(3);
  });

  it("also resolves for a failed transaction, which is a result and not an error", async () => {
    states({ state: "FAILED_FINAL", subState: "REVERTED" });
    expect(await client.waitFor(sampleTxId(1))).toMatchObject({ state: "FAILED_FINAL", subState: "REVERTED" });
  });

  it("stops at its timeout and at the caller's abort", async () => {
    states({ state: "TRACKING", subState: "PENDING" });
    await expect(client.waitFor(sampleTxId(1), { timeoutMs: 30, pollIntervalMs: 5 })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    const controller = new AbortController();
    const waiting = client.waitFor(sampleTxId(1), {
      signal: controller.signal,
      timeoutMs: 60_000,
      pollIntervalMs: 60_000,
    });
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(client.waitFor(sampleTxId(1), { signal: controller.signal })).rejects.toThrow("enough");
  });

  it("fails if the transaction does not exist", async () => {
    script.transaction = () => Promise.reject(new FencepostError("NOT_FOUND", "no"));
    expect(await failureOf(client.waitFor(sampleTxId(1)))).toMatchObject({ code: "NOT_FOUND", status: 404 });
  });
});

describe("cluster queries of the client", () => {
  it("list nodes and leases", async () => {
    script.nodes = async () => [sampleInstance()];
    script.leases = async () => [sampleLease(), sampleLease({ owner: null })];
    expect(await client.nodes()).toEqual([expect.objectContaining({ nodeId: "node-a", lanes: 3 })]);
    expect(await client.leases()).toEqual([expect.objectContaining({ signer: SIGNER_EIP55, fencingToken: 3 })]);
  });
});

describe("the client", () => {
  it("throws UNAUTHENTICATED for a wrong or missing key", async () => {
    expect(await failureOf(createClient({ url, apiKey: "wrong" }).signers())).toMatchObject({
      code: "UNAUTHENTICATED",
    });
    expect(await failureOf(createClient({ url }).signers())).toMatchObject({ status: 401 });
  });

  it("throws UNREACHABLE if there is no server at the address", async () => {
    const error = await failureOf(createClient({ url: "http://127.0.0.1:9", repeat: false }).send(intent));
    expect(error).toMatchObject({ code: "UNREACHABLE", status: 0, problem: null, requestId: "order-42" });
    expect(error.cause).toBeDefined();
  });

  it.each([
    [502, "<html>Bad Gateway</html>"],
    [200, "<html>Sign in</html>"],
    [200, ""],
    [500, '{"error":"x"}'],
    [404, "null"],
  ])("throws UNEXPECTED_ANSWER for a proxy's response: %i %s", async (status, body) => {
    const proxy = createServer((_, response) => response.writeHead(status).end(body));
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const { port } = proxy.address() as AddressInfo;
    const error = await failureOf(createClient({ url: `http://127.0.0.1:${port}`, repeat: false }).signers());
    expect(error).toMatchObject({ code: "UNEXPECTED_ANSWER", status });
    proxy.close();
  });

  it("uses the fetch function that it is given", async () => {
    const seen: string[] = [];
    const fetch: typeof globalThis.fetch = async (input) => {
      seen.push(String(input));
      return new Response('{"items":[]}');
    };
    await createClient({ url: "http://node/fencepost/", fetch }).signers();
    expect(seen).toEqual(["http://node/fencepost/api/v1/signers?limit=500"]);
  });
});

describe("operator actions of the client", () => {
  it.each(["resubmit", "reprice", "cancel", "replace", "resolve"] as const)(
    "include %s for a transaction",
    async (action) => {
      const seen: unknown[] = [];
      script.act = async (actionRequest) => {
        seen.push(actionRequest);
        return sampleTransaction();
      };
      const actionRequest = { reason: "r", payload: { to: RECIPIENT_EIP55, value: 1n }, maxFeePerGas: 5n };
      const answered = await client[action](sampleTxId(1), actionRequest as Parameters<typeof client.replace>[1]);
      expect(answered).toMatchObject({ txId: sampleTxId(1), signer: SIGNER_EIP55 });
      const request = { reason: "r", payload: { to: RECIPIENT_EIP55, value: "1" }, maxFeePerGas: "5" };
      expect(seen).toEqual([
        { action, txId: sampleTxId(1), request, actor: "operator:test", idempotencyKey: expect.any(String) },
      ]);
    },
  );

  it.each(["suspend", "resume"] as const)("include %s for one transaction", async (action) => {
    const actionRequests: unknown[] = [];
    script.act = async (actionRequest) => {
      actionRequests.push(actionRequest);
      return sampleTransaction();
    };
    await client[`${action}Transaction`](sampleTxId(1), { reason: "r" });
    expect(actionRequests).toEqual([
      {
        action,
        txId: sampleTxId(1),
        request: { reason: "r" },
        actor: "operator:test",
        idempotencyKey: expect.any(String),
      },
    ]);
  });

  it.each(["suspend", "resume", "realign"] as const)("include %s for a signer", async (action) => {
    script.actOnLane = async () => [sampleSigner({ suspendedBy: action === "suspend" ? "OPERATOR" : null })];
    const lanes = await client[action](SIGNER_EIP55, { reason: "r" });
    expect(lanes).toMatchObject([{ signer: SIGNER_EIP55, suspended: action === "suspend" }]);
  });

  it.each(["kill", "endKill"] as const)("include %s for all signers or for one", async (name) => {
    const actionRequests: unknown[] = [];
    script[name] = async (actionRequest) => {
      actionRequests.push(actionRequest);
      return { durable: true, kills: [], nodes: [] };
    };
    expect(await client[name]()).toEqual({ durable: true, kills: [], nodes: [] });
    await client[name]({ signer: SIGNER_EIP55, reason: "r" });
    expect(actionRequests).toEqual([
      { signer: null, request: {}, actor: "operator:test" },
      { signer: SIGNER_EIP55, request: { reason: "r" }, actor: "operator:test" },
    ]);
  });

  it("name the mined transaction if the action came too late", async () => {
    const txHash: Hash = `0x${"1".repeat(64)}`;
    script.act = () => Promise.reject(new FencepostError("CONFLICT", "it was mined", { txHash }));
    const error = await failureOf(client.cancel(sampleTxId(1), { reason: "r" }));
    expect(error).toMatchObject({ code: "CONFLICT", status: 409, problem: { txHash } });
  });
});
