import { afterEach, describe, expect, it } from "vitest";
import { RpcErrorAnswer, type RpcReply, RpcUnreachable } from "../../../../src/adapters/evm/rpc/errors.ts";
import {
  createTransport,
  type RpcReport,
  type RpcTransport,
  type TransportOptions,
} from "../../../../src/adapters/evm/rpc/transport.ts";
import { createManualClock, type ManualClock } from "../../../doubles/manual-clock.ts";
import { type FaultyRpc, Refusal, startFaultyRpc } from "../../../support/faulty-rpc.ts";

interface Bench {
  readonly server: FaultyRpc;
  readonly rpc: RpcTransport;
  readonly clock: ManualClock;
  readonly reports: readonly RpcReport[];
}

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function bench(options: Partial<TransportOptions> = {}): Promise<Bench> {
  const server = await startFaultyRpc();
  const clock = createManualClock();
  const reports: RpcReport[] = [];
  const rpc = createTransport({ url: server.url, clock, report: (each) => void reports.push(each), ...options });
  server.on("echo", ([value]) => value);
  closers.push(
    () => rpc.close(),
    () => server.close(),
  );
  return { server, rpc, clock, reports };
}

const echo = (value: unknown) => ({ method: "echo", params: [value] });
const echoes = (count: number) => Array.from({ length: count }, (_, index) => echo(index));
const values = (replies: readonly RpcReply[]) =>
  replies.map((reply) => (reply.ok ? reply.result : kindOf(reply.error)));
const kindOf = (error: unknown) => (error instanceof RpcUnreachable ? error.kind : `answer ${String(error)}`);
const failure = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "it succeeded",
    (error: unknown) => error,
  );

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe("batching", () => {
  it("sends a lone call as a plain object", async () => {
    const { server, rpc } = await bench();
    expect(await rpc.request("echo", ["hello"])).toBe("hello");
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]?.batch).toBe(false);
  });

  it("puts calls of one tick into one request, each with its own fate", async () => {
    const { server, rpc } = await bench();
    server.on("no", () => {
      throw new Refusal(-32000, "not today", { why: 1 });
    });
    const [a, b, c] = await Promise.allSettled([
      rpc.request("echo", [1]),
      rpc.request("no", []),
      rpc.request("echo", [3]),
    ]);
    expect(a).toEqual({ status: "fulfilled", value: 1 });
    expect(b.status === "rejected" && b.reason).toMatchObject({ code: -32000, message: "not today", data: { why: 1 } });
    expect(b.status === "rejected" && b.reason).toBeInstanceOf(RpcErrorAnswer);
    expect(c).toEqual({ status: "fulfilled", value: 3 });
    expect(server.requests).toHaveLength(1);
  });

  it("cuts at a hundred calls", async () => {
    const { server, rpc } = await bench();
    expect(values(await rpc.batch(echoes(250)))).toEqual(Array.from({ length: 250 }, (_, index) => index));
    expect(server.requests.map((each) => each.calls.length).sort()).toEqual([100, 100, 50]);
  });

  it("cuts at the byte limit, and lets a call that is over it travel alone", async () => {
    const { server, rpc } = await bench({ maxBatchBytes: 1_000 });
    const long = "x".repeat(400);
    const huge = "y".repeat(5_000);
    expect(values(await rpc.batch([echo(long), echo(long), echo(long), echo(huge), echo(1)]))).toEqual([
      long,
      long,
      long,
      huge,
      1,
    ]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([2, 1, 1, 1]);
  });

  it("merges what is asked while every slot is taken", async () => {
    const { server, rpc } = await bench({ maxRequestsInFlight: 1 });
    const gate = deferred();
    server.on("slow", () => gate.promise.then(() => "slow"));
    const slow = rpc.request("slow", []);
    await server.arrived(1);
    const later = [1, 2, 3].map(async (value) => {
      await undefined;
      return rpc.request("echo", [value]);
    });
    gate.resolve();
    expect(await Promise.all([slow, ...later])).toEqual(["slow", 1, 2, 3]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([1, 3]);
  });

  it("answers nothing to nothing", async () => {
    const { server, rpc } = await bench();
    expect(await rpc.batch([])).toEqual([]);
    expect(await rpc.sendInOrder([])).toEqual([]);
    expect(server.requests).toHaveLength(0);
  });
});

describe("matching replies to calls", () => {
  it("goes by id, in whatever order and type they come back", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "reorder" }, { kind: "stringIds" });
    expect(values(await rpc.batch(echoes(3)))).toEqual([0, 1, 2]);
    expect(values(await rpc.batch(echoes(3)))).toEqual([0, 1, 2]);
  });

  it("leaves a call without an answer where the server left it out", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "omit", at: 1 });
    expect(values(await rpc.batch(echoes(3)))).toEqual([0, "malformed", 2]);
  });

  it("believes neither of two answers to one call, nor any to a call never made", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "duplicateIds" }, { kind: "wrongIds" }, { kind: "wrongIds" });
    expect(values(await rpc.batch(echoes(2)))).toEqual(["malformed", "malformed"]);
    expect(values(await rpc.batch(echoes(2)))).toEqual(["malformed", "malformed"]);
    expect(values(await rpc.batch(echoes(1)))).toEqual(["malformed"]);
  });

  it.each([
    ["an array for one", "[]"],
    ["null", "null"],
    ["a number", "7"],
    ["neither result nor error", '{"jsonrpc":"2.0","id":1}'],
    ["an error that is a text", '{"jsonrpc":"2.0","id":1,"error":"no"}'],
    ["a result of nobody", '{"jsonrpc":"2.0","id":null,"result":"0x1"}'],
    ["HTML", "<html><body>502 Bad Gateway</body></html>"],
    ["nothing", ""],
  ])("takes %s as no answer", async (_, body) => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "raw", body });
    expect(kindOf(await failure(rpc.request("echo", [1])))).toBe("malformed");
  });

  it("takes an error without id as the answer to a call sent alone", async () => {
    const { server, rpc } = await bench();
    server.failNext({
      kind: "raw",
      body: '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}',
    });
    expect(await failure(rpc.request("echo", [1]))).toMatchObject({ code: -32700, message: "parse error" });
  });

  it("takes members that are no objects as nothing", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "raw", body: '[null, 7, "x", []]' });
    expect(values(await rpc.batch(echoes(2)))).toEqual(["malformed", "malformed"]);
  });
});

describe("no answer", () => {
  it.each([
    ["a lost reply", { kind: "swallow" }, "connection"],
    ["a cut connection", { kind: "cut" }, "connection"],
    ["half of the JSON", { kind: "truncate" }, "malformed"],
    ["502 with HTML", { kind: "status", status: 502, body: "<html>Bad Gateway</html>" }, "http"],
    [
      "503 with JSON-RPC in it",
      { kind: "status", status: 503, body: '{"jsonrpc":"2.0","id":1,"result":"0x1"}' },
      "http",
    ],
    ["401", { kind: "status", status: 401, body: '{"error":{"code":-32000,"message":"nonce too low"}}' }, "http"],
    ["403", { kind: "status", status: 403 }, "http"],
    ["429", { kind: "status", status: 429 }, "rateLimited"],
    ["404 with HTML", { kind: "status", status: 404, body: "<html>" }, "malformed"],
  ] as const)("%s", async (_, fault, kind) => {
    const { server, rpc } = await bench();
    server.failNext(fault);
    expect(kindOf(await failure(rpc.request("echo", [1])))).toBe(kind);
  });

  it("nobody listens", async () => {
    const { server, rpc } = await bench();
    await server.close();
    closers.pop();
    expect(kindOf(await failure(rpc.request("echo", [1])))).toBe("connection");
  });

  it("after the deadline, and not before", async () => {
    const { server, rpc, clock } = await bench({ timeoutMs: 5_000 });
    server.failNext({ kind: "hang" });
    let settled = false;
    const asked = failure(rpc.request("echo", [1])).finally(() => {
      settled = true;
    });
    await server.arrived(1);
    await clock.advance(4_999);
    expect(settled).toBe(false);
    await clock.advance(1);
    expect(kindOf(await asked)).toBe("timeout");
    expect(clock.armedTimers).toBe(0);
  });

  it("leaves no timer behind where all went well", async () => {
    const { rpc, clock } = await bench();
    await rpc.request("echo", [1]);
    expect(clock.armedTimers).toBe(0);
  });

  it("more than is taken", async () => {
    const { server, rpc } = await bench({ maxResponseBytes: 2_000 });
    expect(kindOf(await failure(rpc.request("echo", ["x".repeat(3_000)])))).toBe("tooLarge");
    const calls = Array.from({ length: 4 }, () => echo("y".repeat(600)));
    expect((await rpc.batch(calls)).every((reply) => reply.ok)).toBe(true);
    expect(server.requests.map((each) => each.calls.length)).toEqual([1, 4, 2, 2]);
  });

  it("a node's refusal under HTTP 400 is an answer all the same", async () => {
    const { server, rpc } = await bench();
    const body = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Nonce too low"}}';
    server.failNext({ kind: "status", status: 400, body });
    expect(await failure(rpc.request("echo", [1]))).toMatchObject({ code: -32001, message: "Nonce too low" });
  });
});

describe("being asked to wait", () => {
  const limited = (retryAfter: string) =>
    ({ kind: "status", status: 429, headers: { "retry-after": retryAfter } }) as const;

  it("leaves the endpoint alone for as long as it said, in seconds", async () => {
    const { server, rpc, clock } = await bench();
    server.failNext(limited("7"));
    await failure(rpc.request("echo", [1]));
    await clock.advance(6_999);
    expect(kindOf(await failure(rpc.request("echo", [1])))).toBe("rateLimited");
    expect(server.requests).toHaveLength(1);
    await clock.advance(1);
    expect(await rpc.request("echo", [1])).toBe(1);
  });

  it("or as a date, or a second where the header is nonsense, and never longer than a minute", async () => {
    const { server, rpc, clock } = await bench();
    const waits: [string, number][] = [
      [new Date(clock.now().getTime() + 5_000).toUTCString(), 5_000],
      ["soon", 1_000],
      ["86400", 60_000],
    ];
    for (const [header, ms] of waits) {
      server.failNext(limited(header));
      await failure(rpc.request("echo", [1]));
      const seen = server.requests.length;
      await clock.advance(ms - 1);
      await failure(rpc.request("echo", [1]));
      expect(server.requests).toHaveLength(seen);
      await clock.advance(1);
      expect(await rpc.request("echo", [1])).toBe(1);
    }
  });
});

describe("endpoints that refuse batches", () => {
  const unsupported = {
    jsonrpc: "2.0",
    id: null,
    error: { code: -32600, message: "batch requests are not supported" },
  };

  it("are asked one by one, and remembered", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches(unsupported);
    expect(values(await rpc.batch(echoes(3)))).toEqual([0, 1, 2]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([3, 1, 1, 1]);
    expect(values(await rpc.batch(echoes(2)))).toEqual([0, 1]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([3, 1, 1, 1, 1, 1]);
  });

  it("are tried again with batches after a while", async () => {
    const { server, rpc, clock } = await bench();
    server.refuseBatches(unsupported);
    await rpc.batch(echoes(2));
    server.refuseBatches(null);
    await clock.advance(10 * 60_000);
    await rpc.request("echo", [1]);
    const before = server.requests.length;
    await rpc.batch(echoes(5));
    expect(server.requests.slice(before).map((each) => each.calls.length)).toEqual([5]);
  });

  it("may refuse in HTML", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "status", status: 400, body: "<html>" });
    expect(values(await rpc.batch(echoes(2)))).toEqual([0, 1]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([2, 1, 1]);
  });

  it("or only long ones: halved until they fit", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches({ error: { code: -32005, message: "Number of requests exceeds max batch size" } }, 30);
    expect(values(await rpc.batch(echoes(100)))).toEqual(Array.from({ length: 100 }, (_, index) => index));
    const before = server.requests.length;
    await rpc.batch(echoes(50));
    expect(server.requests.slice(before).map((each) => each.calls.length)).toEqual([25, 25]);
  });

  it("413 halves too", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "status", status: 413, body: "too large" });
    expect(values(await rpc.batch(echoes(4)))).toEqual([0, 1, 2, 3]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([4, 2, 2]);
  });

  it("are not confused with endpoints that limit the rate: no answer, and no flood of single calls", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches({ error: { code: -32005, message: "daily request count exceeded, request rate limited" } });
    expect(values(await rpc.batch(echoes(3)))).toEqual(["malformed", "malformed", "malformed"]);
    expect(server.requests).toHaveLength(1);
    server.refuseBatches(null);
    await rpc.batch(echoes(3));
    expect(server.requests.map((each) => each.calls.length)).toEqual([3, 3]);
  });

  it("nor with endpoints that fail altogether", async () => {
    const { server, rpc } = await bench();
    server.failAlways({ kind: "status", status: 400, body: "<html>" });
    expect(values(await rpc.batch(echoes(2)))).toEqual(["malformed", "malformed"]);
    server.failAlways(null);
    const before = server.requests.length;
    await rpc.batch(echoes(2));
    expect(server.requests.slice(before).map((each) => each.calls.length)).toEqual([2]);
  });
});

describe("sending in order", () => {
  it("never has two parts on the way at once", async () => {
    const { server, rpc } = await bench();
    const gate = deferred();
    server.on("echo", async ([value]) => {
      if (value === 0) await gate.promise;
      return value;
    });
    const sent = rpc.sendInOrder(echoes(250));
    await server.arrived(1);
    expect(server.requests).toHaveLength(1);
    gate.resolve();
    expect(values(await sent)).toEqual(Array.from({ length: 250 }, (_, index) => index));
    const order = server.requests.flatMap((each) => each.calls.map((call) => call.params[0]));
    expect(order).toEqual(Array.from({ length: 250 }, (_, index) => index));
  });

  it("sends no more once a part got no answer, and says so of all the rest", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "reorder" }, { kind: "swallow" });
    const replies = values(await rpc.sendInOrder(echoes(250)));
    expect(replies.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(new Set(replies.slice(100))).toEqual(new Set(["connection"]));
    expect(server.requests).toHaveLength(2);
  });

  it("keeps the order where there are no batches", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches({ error: { code: -32600, message: "no batches" } });
    server.on("echo", async ([value]) => value);
    expect(values(await rpc.sendInOrder(echoes(5)))).toEqual([0, 1, 2, 3, 4]);
    const singles = server.requests.filter((each) => !each.batch);
    expect(singles.map((each) => each.calls[0]?.params[0])).toEqual([0, 1, 2, 3, 4]);
    server.failNext({ kind: "reorder" }, { kind: "cut" });
    expect(values(await rpc.sendInOrder(echoes(5)))).toEqual([0, ...Array(4).fill("connection")]);
  });

  it("shares no request with reads, but one with other senders", async () => {
    const { server, rpc } = await bench();
    await Promise.all([
      rpc.sendInOrder(echoes(2)),
      rpc.batch(echoes(3)),
      rpc.sendInOrder(echoes(4)),
      rpc.request("echo", [1]),
    ]);
    expect(server.requests.map((each) => each.calls.length).sort()).toEqual([4, 6]);
  });
});

describe("the URL", () => {
  it("keeps path and query, and turns user and password into a header", async () => {
    const server = await startFaultyRpc();
    const url = server.url.replace("http://", "http://us%40er:p%3Ass@");
    const rpc = createTransport({
      url: `${url}/v3/key-123?token=abc`,
      clock: createManualClock(),
      report: () => undefined,
    });
    closers.push(
      () => rpc.close(),
      () => server.close(),
    );
    await rpc.request("eth_chainId", []);
    const [seen] = server.requests;
    expect(seen?.path).toBe("/v3/key-123?token=abc");
    expect(seen?.headers.authorization).toBe(`Basic ${Buffer.from("us@er:p:ss").toString("base64")}`);
  });

  it("shows none of its secrets in labels and errors", async () => {
    const clock = createManualClock();
    const rpc = createTransport({
      url: "http://user:pass@127.0.0.1:1/v3/key-123?token=abc",
      clock,
      report: () => undefined,
    });
    closers.push(() => rpc.close());
    const error = await failure(rpc.request("eth_chainId", []));
    expect(rpc.label).toBe("http://127.0.0.1:1");
    for (const secret of ["user", "pass", "key-123", "abc"]) expect(String(error)).not.toContain(secret);
  });

  it.each(["nonsense with secret", "ws://secret@host", "ftp://secret", ""])(
    "refuses %j without repeating it",
    (url) => {
      const make = () => createTransport({ url, clock: createManualClock(), report: () => undefined });
      expect(make).toThrow(TypeError);
      expect(make).not.toThrow(/secret/);
    },
  );
});

describe("closing", () => {
  it("ends what is on the way and what waits", async () => {
    const { server, rpc } = await bench({ maxRequestsInFlight: 1 });
    server.failNext({ kind: "hang" });
    const onTheWay = failure(rpc.request("echo", [1]));
    await server.arrived(1);
    const waiting = failure(rpc.request("echo", [2]));
    await rpc.close();
    expect(kindOf(await onTheWay)).toBe("closed");
    expect(kindOf(await waiting)).toBe("closed");
  });
});

it("reports every call with its method, its fate and how long it took", async () => {
  const { server, rpc, reports } = await bench();
  await Promise.allSettled([rpc.request("echo", [1]), rpc.request("nothing", [])]);
  server.failNext({ kind: "cut" });
  await failure(rpc.request("echo", [2]));
  expect(reports.map(({ method, result }) => [method, result])).toEqual([
    ["echo", "ok"],
    ["nothing", "error"],
    ["echo", "unreachable"],
  ]);
  for (const { durationMs } of reports) expect(durationMs).toBeGreaterThanOrEqual(0);
});
