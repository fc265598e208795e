import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openNewHeads } from "../../../../src/adapters/evm/rpc/new-heads.ts";
import { createManualClock, type ManualClock } from "../../../doubles/manual-clock.ts";
import { SocketServer } from "../../../support/socket-server.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const HEAD = JSON.stringify({
  jsonrpc: "2.0",
  method: "eth_subscription",
  params: { subscription: "0x1", result: {} },
});

let server: SocketServer;
let clock: ManualClock;
let heads: ReturnType<typeof openNewHeads>;
let hints = 0;
beforeEach(async () => {
  server = new SocketServer();
  clock = createManualClock();
  hints = 0;
  heads = openNewHeads({ url: await server.listen(), clock, entropy: { random: () => 0.5 } });
  heads.subscribe(() => void hints++);
  await subscribed(1);
});
afterEach(async () => {
  await heads.close();
  await server.close();
});

const subscribed = (times: number) => waitUntil(async () => server.received.length === times, `${times} subscriptions`);

describe("the newHeads subscription over a WebSocket", () => {
  it("is requested once", async () => {
    expect(JSON.parse(server.received[0] ?? "")).toMatchObject({ method: "eth_subscribe", params: ["newHeads"] });
    server.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x1" }));
    server.send(HEAD);
    server.send(HEAD);
    await waitUntil(async () => hints === 2, "two hints");
  });

  it("is renewed after a broken connection, with a pause", async () => {
    server.cut();
    await waitUntil(async () => server.connections === 0 && clock.armedTimers > 0, "the client has seen it");
    await clock.advance(30_000);
    await subscribed(2);
    server.send(HEAD);
    await waitUntil(async () => hints === 1, "a hint");
  });

  it("is renewed after a minute without a message", async () => {
    await clock.advance(60_000);
    await clock.advance(30_000);
    await subscribed(2);
  });

  it("gives no hint for messages about anything else", async () => {
    server.send("nonsense");
    server.send(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32601, message: "not here" } }));
    server.send(HEAD);
    await waitUntil(async () => hints > 0, "a hint");
    expect(hints).toBe(1);
  });

  it("opens no new connection after it is closed", async () => {
    await heads.close();
    await waitUntil(async () => server.connections === 0, "it is closed");
    expect(clock.armedTimers).toBe(0);
    await clock.advance(120_000);
    expect(server.received.length).toBe(1);
  });
});
