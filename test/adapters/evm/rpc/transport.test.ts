import { describe, expect, it } from "vitest";
import { RpcErrorAnswer } from "../../../../src/adapters/evm/rpc/rpc-errors.ts";
import { createTransport } from "../../../../src/adapters/evm/rpc/transport.ts";
import { createManualClock } from "../../../doubles/manual-clock.ts";
import { Refusal } from "../../../support/faulty-rpc.ts";
import {
  deferred,
  echo,
  echoes,
  failure,
  kindOf,
  useTransportBench,
  values,
} from "../../../support/transport-bench.ts";

const bench = useTransportBench();

describe("batching of RPC calls", () => {
  it("sends a single call as a plain object", async () => {
    const { server, rpc } = await bench();
    expect(await rpc.request("echo", ["hello"])).toBe("hello");
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]?.batch).toBe(false);
  });

  it("puts the calls of one tick into one request, each with its own result", async () => {
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

  it("splits a batch at a hundred calls", async () => {
    const { server, rpc } = await bench();
    expect(values(await rpc.batch(echoes(250)))).toEqual(Array.from({ length: 250 }, (_, index) => index));
    expect(server.requests.map((each) => each.calls.length).sort()).toEqual([100, 100, 50]);
  });

  it("splits a batch at the byte limit, and sends a call over the limit alone", async () => {
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

  it("merges calls that wait while all request slots are in use", async () => {
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

  it("returns an empty list for an empty list of calls", async () => {
    const { server, rpc } = await bench();
    expect(await rpc.batch([])).toEqual([]);
    expect(await rpc.sendInOrder([])).toEqual([]);
    expect(server.requests).toHaveLength(0);
  });
});

describe("matching RPC replies to calls", () => {
  it("uses the reply's id, in any order, given as number or text", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "reorder" }, { kind: "stringIds" });
    expect(values(await rpc.batch(echoes(3)))).toEqual([0, 1, 2]);
    expect(values(await rpc.batch(echoes(3)))).toEqual([0, 1, 2]);
  });

  it("reports no answer for a call whose reply the server omitted", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "omit", at: 1 });
    expect(values(await rpc.batch(echoes(3)))).toEqual([0, "malformed", 2]);
  });

  it("refuses two replies to one call", async () => {
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
    ["a result without an id", '{"jsonrpc":"2.0","id":null,"result":"0x1"}'],
    ["HTML", "<html><body>502 Bad Gateway</body></html>"],
    ["nothing", ""],
  ])("treats %s in the response body as no answer", async (_, body) => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "raw", body });
    expect(kindOf(await failure(rpc.request("echo", [1])))).toBe("malformed");
  });

  it("accepts an error without id as the reply to a single call", async () => {
    const { server, rpc } = await bench();
    server.failNext({
      kind: "raw",
      body: '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}',
    });
    expect(await failure(rpc.request("echo", [1]))).toMatchObject({ code: -32700, message: "parse error" });
  });

  it("keeps only the first 4,000 characters of an error text before patterns are matched", async () => {
    const { server, rpc } = await bench();
    const words = "method limit ".repeat(100_000);
    server.on("endless", () => {
      throw new Refusal(-32000, words);
    });
    const error = await failure(rpc.request("endless", []));
    expect(error).toMatchObject({ code: -32000, message: words.slice(0, 4_000) });
    server.refuseBatches({ jsonrpc: "2.0", id: null, error: { code: -32000, message: `${words} rate limit` } });
    expect(values(await rpc.batch(echoes(2)))).toEqual(["malformed", "malformed"]);
  });

  it("ignores entries of a batch reply that are not objects", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "raw", body: '[null, 7, "x", []]' });
    expect(values(await rpc.batch(echoes(2)))).toEqual(["malformed", "malformed"]);
  });
});

describe("an RPC call", () => {
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
  ] as const)("fails with a specific kind of error after %s", async (_, fault, kind) => {
    const { server, rpc } = await bench();
    server.failNext(fault);
    expect(kindOf(await failure(rpc.request("echo", [1])))).toBe(kind);
  });

  it("fails if no process listens at the port", async () => {
    const { rpc } = await bench({ url: "http://127.0.0.1:1" });
    expect(kindOf(await failure(rpc.request("echo", [1])))).toBe("connection");
  });

  it("fails after the deadline, and not before", async () => {
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

  it("leaves no timer behind after a success", async () => {
    const { rpc, clock } = await bench();
    await rpc.request("echo", [1]);
    expect(clock.armedTimers).toBe(0);
  });

  it("fails if the response is over the size limit", async () => {
    const { server, rpc } = await bench({ maxResponseBytes: 2_000 });
    expect(kindOf(await failure(rpc.request("echo", ["x".repeat(3_000)])))).toBe("tooLarge");
    const calls = Array.from({ length: 4 }, () => echo("y".repeat(600)));
    expect((await rpc.batch(calls)).every((reply) => reply.ok)).toBe(true);
    expect(server.requests.map((each) => each.calls.length)).toEqual([1, 4, 2, 2]);
  });

  it("treats a node's refusal under HTTP 400 as an answer, not as a failure", async () => {
    const { server, rpc } = await bench();
    const body = '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Nonce too low"}}';
    server.failNext({ kind: "status", status: 400, body });
    expect(await failure(rpc.request("echo", [1]))).toMatchObject({ code: -32001, message: "Nonce too low" });
  });
});

describe("an endpoint's Retry-After header", () => {
  const limited = (retryAfter: string) =>
    ({ kind: "status", status: 429, headers: { "retry-after": retryAfter } }) as const;

  // protects [Chains that differ] src/adapters/evm/rpc/transport.ts
  it("pauses calls for the given number of seconds", async () => {
    const { server, rpc, clock } = await bench();
    server.failNext(limited("7"));
    await failure(rpc.request("echo", [1]));
    await clock.advance(6_999);
    expect(kindOf(await failure(rpc.request("echo", [1])))).toBe("rateLimited");
    expect(server.requests).toHaveLength(1);
    await clock.advance(1);
    expect(await rpc.request("echo", [1])).toBe(1);
  });

  it("pauses calls for at most a minute", async () => {
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

describe("the URL of an endpoint", () => {
  it("keeps path and query, and turns user and password into a header", async () => {
    const { server } = await bench();
    const { rpc } = await bench({
      url: `${server.url.replace("http://", "http://us%40er:p%3Ass@")}/v3/key-123?token=abc`,
    });
    await rpc.request("eth_chainId", []);
    const [seen] = server.requests;
    expect(seen?.path).toBe("/v3/key-123?token=abc");
    expect(seen?.headers.authorization).toBe(`Basic ${Buffer.from("us@er:p:ss").toString("base64")}`);
  });

  it("reveals none of its secrets in metric labels and errors", async () => {
    const { rpc } = await bench({ url: "http://user:pass@127.0.0.1:1/v3/key-123?token=abc" });
    const error = await failure(rpc.request("eth_chainId", []));
    expect(rpc.label).toBe("http://127.0.0.1:1");
    for (const secret of ["user", "pass", "key-123", "abc"]) expect(String(error)).not.toContain(secret);
  });

  it.each(["nonsense with secret", "ws://secret@host", "ftp://secret", ""])("is refused if it is %j", (url) => {
    const make = () => createTransport({ url, clock: createManualClock(), report: () => undefined });
    expect(make).toThrow(TypeError);
    expect(make).not.toThrow(/secret/);
  });
});

describe("closing the RPC transport", () => {
  it("fails calls that are in flight and calls that wait", async () => {
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

it("consecutive RPC calls of one batch with the same method and result are reported as one metric", async () => {
  const { rpc, reports } = await bench();
  const calls = ["echo", "echo", "nothing", "echo"].map((method) => ({ method, params: [1] }));
  await rpc.batch(calls);
  expect(reports.map(({ method, result, calls }) => [method, result, calls])).toEqual([
    ["echo", "ok", 2],
    ["nothing", "error", 1],
    ["echo", "ok", 1],
  ]);
});

it("every RPC call is reported with its method, result and duration", async () => {
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
