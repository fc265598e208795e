import { describe, expect, it } from "vitest";
import { deferred, echoes, useTransportBench, values } from "../../../support/transport-bench.ts";

const bench = useTransportBench();

describe("endpoints that refuse batches", () => {
  const unsupported = {
    jsonrpc: "2.0",
    id: null,
    error: { code: -32600, message: "batch requests are not supported" },
  };

  it("get single calls after the first refusal", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches(unsupported);
    expect(values(await rpc.batch(echoes(3)))).toEqual([0, 1, 2]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([3, 1, 1, 1]);
    expect(values(await rpc.batch(echoes(2)))).toEqual([0, 1]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([3, 1, 1, 1, 1, 1]);
  });

  // protects [Keys of the node, other chains, comparison] src/adapters/evm/rpc/transport.ts
  it("get the unordered calls of a refused batch even if the connection breaks", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "status", status: 400, body: "<html>" }, { kind: "cut" });
    const ordered = rpc.readInOrder(echoes(2));
    const others = values(await rpc.batch(echoes(2)));
    expect(server.requests[0]?.calls).toHaveLength(4);
    // The connection of one request is cut: that of the first ordered call, or of another call that arrives earlier.
    // All other requests succeed.
    expect(others.some((value) => typeof value === "number")).toBe(true);
    expect(await ordered).toHaveLength(2);
  });

  it("get batches again after a while", async () => {
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

  it("are recognized even if they refuse with HTML", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "status", status: 400, body: "<html>" });
    expect(values(await rpc.batch(echoes(2)))).toEqual([0, 1]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([2, 1, 1]);
  });

  it("get shorter batches if they refuse only long batches", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches({ error: { code: -32005, message: "Number of requests exceeds max batch size" } }, 30);
    expect(values(await rpc.batch(echoes(100)))).toEqual(Array.from({ length: 100 }, (_, index) => index));
    const before = server.requests.length;
    await rpc.batch(echoes(50));
    expect(server.requests.slice(before).map((each) => each.calls.length)).toEqual([25, 25]);
  });

  it("get halved batches if they refuse with HTTP 413", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "status", status: 413, body: "too large" });
    expect(values(await rpc.batch(echoes(4)))).toEqual([0, 1, 2, 3]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([4, 2, 2]);
  });

  it("are distinguished from rate-limited endpoints", async () => {
    const { server, rpc, clock } = await bench();
    server.refuseBatches({ error: { code: -32005, message: "daily request count exceeded, request rate limited" } });
    expect(values(await rpc.batch(echoes(4)))).toEqual(Array(4).fill("rateLimited"));
    expect(server.requests).toHaveLength(1);
    expect(values(await rpc.batch(echoes(4)))).toEqual(Array(4).fill("rateLimited"));
    expect(server.requests).toHaveLength(1);
    server.refuseBatches(null);
    await clock.advance(1_000);
    expect(values(await rpc.batch(echoes(4)))).toEqual([0, 1, 2, 3]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([4, 2, 2]);
  });

  it.each([
    { code: -32005, message: "limit exceeded" },
    { code: 429, message: "slow down" },
    { code: -32000, message: "Too Many Requests" },
    { code: -32029, message: "Your app has exceeded its compute units per second capacity" },
  ])("are not confused with rate-limited endpoints that answer: $message", async (error) => {
    const { server, rpc } = await bench();
    server.refuseBatches({ jsonrpc: "2.0", id: null, error });
    expect(values(await rpc.batch(echoes(2)))).toEqual(["rateLimited", "rateLimited"]);
  });

  it("are distinguished from endpoints that report an unrelated error", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches({ jsonrpc: "2.0", id: null, error: { code: -32000, message: "unauthorized" } });
    expect(values(await rpc.batch(echoes(2)))).toEqual(["malformed", "malformed"]);
  });

  it("are distinguished from endpoints that fail entirely", async () => {
    const { server, rpc } = await bench();
    server.failAlways({ kind: "status", status: 400, body: "<html>" });
    expect(values(await rpc.batch(echoes(2)))).toEqual(["malformed", "malformed"]);
    server.failAlways(null);
    const before = server.requests.length;
    await rpc.batch(echoes(2));
    expect(server.requests.slice(before).map((each) => each.calls.length)).toEqual([2]);
  });
});

describe("endpoints whose rate limit counts each call of a batch", () => {
  const limited = { kind: "status", status: 429, headers: { "retry-after": "1" } } as const;
  const sizes = (requests: readonly { readonly calls: readonly unknown[] }[]) =>
    requests.map(({ calls }) => calls.length);

  // protects [Chains that differ] src/adapters/evm/rpc/transport.ts
  it("get half as many calls per batch after each 429", async () => {
    const { server, rpc, clock } = await bench();
    for (let times = 0; times < 2; times++) {
      server.failNext(limited);
      expect(new Set(values(await rpc.sendInOrder(echoes(64))))).toEqual(new Set(["rateLimited"]));
      await clock.advance(1_000);
    }
    expect(values(await rpc.sendInOrder(echoes(64)))).toEqual(Array.from({ length: 64 }, (_, index) => index));
    expect(sizes(server.requests)).toEqual([64, 32, 16, 16, 16, 16]);
    for (let times = 0; times < 30; times++) await rpc.sendInOrder(echoes(100));
    const before = server.requests.length;
    await rpc.sendInOrder(echoes(100));
    expect(sizes(server.requests.slice(before))).toEqual([100]);
  });

  it("get equally long batches after a request that was never sent", async () => {
    const { server, rpc, clock } = await bench();
    server.failNext(limited);
    await rpc.request("echo", [1]).catch(() => undefined);
    await rpc.sendInOrder(echoes(50));
    await clock.advance(1_000);
    await rpc.request("echo", [1]);
    for (let times = 0; times < 50; times++) await rpc.sendInOrder(echoes(100));
    const before = server.requests.length;
    await rpc.sendInOrder(echoes(50));
    expect(sizes(server.requests.slice(before))).toEqual([50]);
  });
});

describe("RPC sends that must stay in order", () => {
  it("never have two batches in flight", async () => {
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

  it("stop after a batch without an answer", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "reorder" }, { kind: "swallow" });
    const replies = values(await rpc.sendInOrder(echoes(250)));
    expect(replies.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(new Set(replies.slice(100))).toEqual(new Set(["connection"]));
    expect(server.requests).toHaveLength(2);
  });

  it("keep their order if the endpoint accepts no batches", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches({ error: { code: -32600, message: "no batches" } });
    server.on("echo", async ([value]) => value);
    expect(values(await rpc.sendInOrder(echoes(5)))).toEqual([0, 1, 2, 3, 4]);
    const singles = server.requests.filter((each) => !each.batch);
    expect(singles.map((each) => each.calls[0]?.params[0])).toEqual([0, 1, 2, 3, 4]);
    server.failNext({ kind: "reorder" }, { kind: "cut" });
    expect(values(await rpc.sendInOrder(echoes(5)))).toEqual([0, ...Array(4).fill("connection")]);
  });

  it("share a request with other ordered sends, but not with reads", async () => {
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
