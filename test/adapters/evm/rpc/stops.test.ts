import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { openHttp } from "../../../../src/adapters/evm/rpc/http.ts";
import { RpcNotStarted, type RpcReply } from "../../../../src/adapters/evm/rpc/rpc-errors.ts";
import { createManualClock } from "../../../doubles/manual-clock.ts";
import { AUTHORITY, SERVER_CERTIFICATE, SERVER_KEY } from "../../../support/certificates.ts";
import { deferred, echo, useTransportBench } from "../../../support/transport-bench.ts";

const bench = useTransportBench();
const NO_BATCHES = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "batch requests are not supported" } };

/** The result of each call: its value, its error message, or "not started" if nothing was sent. */
const results = (replies: readonly RpcReply[]) =>
  replies.map((reply) => {
    if (reply.ok) return reply.result;
    return reply.error instanceof RpcNotStarted ? "not started" : reply.error.message;
  });
const calls = (count: number, mayLeave: () => boolean) =>
  Array.from({ length: count }, (_, at) => ({ ...echo(at), mayLeave }));

describe("waiting RPC calls after a kill", () => {
  // protects [The kill switch] src/adapters/evm/rpc/http.ts, src/adapters/evm/rpc/transport.ts
  it("are not sent when a refused batch is split into single calls", async () => {
    const { server, rpc } = await bench();
    server.refuseBatches(NO_BATCHES);
    const single = () => server.requests.filter(({ batch }) => !batch).length;
    const replies = await rpc.sendInOrder(calls(64, () => single() < 3));
    expect(single()).toBe(3);
    expect(results(replies)).toEqual([0, 1, 2, ...Array(61).fill("not started")]);
  });

  // protects [The kill switch] src/adapters/evm/rpc/http.ts, src/adapters/evm/rpc/transport.ts
  it("are not sent when the slow request before them ends", async () => {
    const { server, rpc } = await bench({ maxRequestsInFlight: 1 });
    const { promise, resolve } = deferred();
    server.on("slow", async () => promise);
    const slow = rpc.sendInOrder([{ method: "slow", params: [] }]);
    await server.arrived(1);
    let stopped = false;
    const waiting = rpc.sendInOrder(calls(2, () => !stopped));
    stopped = true;
    resolve();
    await slow;
    expect(results(await waiting)).toEqual(["not started", "not started"]);
    expect(server.requests).toHaveLength(1);
  });

  // protects [The kill switch] src/adapters/evm/rpc/transport.ts
  it("are removed from a batch", async () => {
    const { server, rpc } = await bench();
    const [ours, theirs] = [rpc.sendInOrder(calls(2, () => false)), rpc.sendInOrder(calls(2, () => true))];
    expect([results(await ours), results(await theirs)]).toEqual([
      ["not started", "not started"],
      [0, 1],
    ]);
    expect(server.requests.map((each) => each.calls.length)).toEqual([2]);
  });

  // protects [The kill switch] src/adapters/evm/rpc/transport.ts
  it("are dropped when a socket becomes free", async () => {
    const { server, rpc } = await bench();
    const stopsLate = { ...echo("stopped"), mayLeave: () => false };
    expect(results(await rpc.sendInOrder([...calls(2, () => true), stopsLate]))).toEqual([0, 1, "not started"]);
    expect(server.requests.map((each) => each.calls.map(({ params }) => params[0]))).toEqual([[0, 1]]);
  });

  it("are not counted as requests", async () => {
    const { server, rpc, reports } = await bench();
    await rpc.sendInOrder(calls(1, () => false));
    expect(reports).toEqual([]);
    expect(results(await rpc.sendInOrder(calls(1, () => true)))).toEqual([0]);
    expect(server.requests).toHaveLength(1);
  });

  it("are reported as not started if an earlier batch got no answer", async () => {
    const { server, rpc } = await bench({ maxBatchCalls: 1 });
    server.failNext({ kind: "cut" });
    const replies = await rpc.sendInOrder(calls(2, () => server.requests.length === 0));
    expect(results(replies)).toEqual([expect.stringContaining("not reachable"), "not started"]);
  });
});

describe("RPC calls whose request was never sent", () => {
  it("are reported as not started if a kill happened before the connection failed", async () => {
    const { server, rpc } = await bench();
    await server.close();
    let stopped = false;
    const [ours, theirs] = [rpc.sendInOrder(calls(1, () => !stopped)), rpc.sendInOrder(calls(1, () => true))];
    stopped = true;
    expect(results(await ours)).toEqual(["not started"]);
    expect(results(await theirs)).toEqual([expect.stringContaining("not reachable")]);
  });

  it("are reported as not started if a kill happened during a requested pause", async () => {
    const { server, rpc } = await bench();
    server.failNext({ kind: "status", status: 429, headers: { "retry-after": "5" } });
    await rpc.batch([echo(1)]);
    expect(results(await rpc.sendInOrder(calls(1, () => false)))).toEqual(["not started"]);
    expect(server.requests).toHaveLength(1);
  });
});

describe("an HTTP request whose socket connects late", () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  /** A TLS server that accepts connections at once, but starts no handshake before the test opens a gate. */
  async function behindDoor() {
    const bodies: string[] = [];
    const tls = createTlsServer({ cert: SERVER_CERTIFICATE, key: SERVER_KEY }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        bodies.push(Buffer.concat(chunks).toString());
        response.end("{}");
      });
    });
    const { promise: connected, resolve: cameIn } = deferred();
    const waiting: Socket[] = [];
    const door = createServer((socket) => {
      waiting.push(socket);
      cameIn();
    });
    door.listen(0, "127.0.0.1");
    await once(door, "listening");
    closers.push(() => {
      for (const socket of waiting) socket.destroy();
      tls.closeAllConnections();
      door.close();
    });
    const http = openHttp({
      url: `https://127.0.0.1:${(door.address() as AddressInfo).port}/`,
      clock: createManualClock(),
      timeoutMs: 10_000,
      maxResponseBytes: 1_000,
      tls: { ca: AUTHORITY },
    });
    closers.push(() => void http.close());
    return { http, bodies, connected, open: () => waiting.forEach((socket) => void tls.emit("connection", socket)) };
  }

  // protects [The kill switch] src/adapters/evm/rpc/http.ts, src/adapters/evm/rpc/transport.ts
  it("sends no bytes after a kill", async () => {
    const { http, bodies, connected, open } = await behindDoor();
    let [asked, stopped] = [0, false];
    const stop = new Error("stopped");
    const posted = http.post("a transaction", () => {
      asked++;
      if (stopped) throw stop;
    });
    await connected;
    expect(asked).toBe(0);
    stopped = true;
    open();
    await expect(posted).rejects.toBe(stop);
    stopped = false;
    await http.post("the next one", () => void asked++);
    expect({ bodies, asked }).toEqual({ bodies: ["the next one"], asked: 2 });
  });
});
