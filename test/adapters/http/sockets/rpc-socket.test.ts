/** Tests one WebSocket connection without a network: what is buffered for it, and which of its messages are read. */
import { describe, expect, it } from "vitest";
import { heldBytes } from "../../../../src/adapters/http/admission/held-bytes.ts";
import type { HeadListener } from "../../../../src/adapters/http/rpc/head-announcer.ts";
import { type Posted, RpcSocket, type WebSocketLike } from "../../../../src/adapters/http/sockets/rpc-socket.ts";
import { createManualClock } from "../../../doubles/manual-clock.ts";

const NONE = '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"none"}}';
const SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}';
const MIB = 1024 * 1024;

class FakeSocket implements WebSocketLike {
  bufferedAmount = 0;
  isPaused = false;
  readonly sent: string[] = [];
  readonly ends: (number | "terminated")[] = [];
  private readonly listeners = new Map<string, (data: Buffer, isBinary: boolean) => void>();

  /** Callbacks of sent messages, to be called when the other side has received them. */
  readonly taken: (() => void)[] = [];

  readonly send = (text: string, left: () => void) => {
    this.sent.push(text);
    this.taken.push(left);
  };
  readonly ping = () => undefined;
  readonly close = (code: number) => void this.ends.push(code);
  readonly terminate = () => void this.ends.push("terminated");
  readonly pause = () => {
    this.isPaused = true;
  };
  readonly resume = () => {
    this.isPaused = false;
  };
  readonly on = (event: string, listener: (data: Buffer, isBinary: boolean) => void) =>
    void this.listeners.set(event, listener);

  say(text: string): void {
    this.listeners.get("message")?.(Buffer.from(text), false);
  }

  emit(event: "ping" | "pong" | "close"): void {
    this.listeners.get(event)?.(Buffer.alloc(0), false);
  }
}

function open(post: (text: string) => Promise<Posted> = async () => ({ status: 200, body: NONE })) {
  const bytes = heldBytes({ ofKey: 16 * MIB, ofNode: 16 * MIB });
  const backlog = heldBytes({ ofKey: 1_000, ofNode: 1_000 });
  const clock = createManualClock();
  const socket = new FakeSocket();
  const headListeners = new Set<HeadListener>();
  const subscribeHeads = async (listener: HeadListener) => {
    headListeners.add(listener);
    return () => void headListeners.delete(listener);
  };
  const hold = { received: () => bytes("shop"), sent: () => backlog("shop") };
  const opened = new RpcSocket(socket, { clock, post, subscribeHeads, hold }, () => undefined);
  const announceHead = () => {
    for (const notify of headListeners) notify({ header: { hash: "0x1", parentHash: "0x0" }, dropped: [] });
  };
  return { clock, socket, headListeners, announceHead, bytes, backlog, opened };
}

describe("a JSON-RPC WebSocket connection", () => {
  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("is closed if the client does not read the responses", async () => {
    const { clock, socket, headListeners, announceHead } = open();
    socket.say(SUBSCRIBE);
    await clock.advance(0);
    expect(headListeners.size).toBe(1);
    socket.bufferedAmount = 8 * MIB;
    announceHead();
    expect([socket.sent.length, socket.ends]).toEqual([2, []]);
    socket.bufferedAmount++;
    announceHead();
    announceHead();
    expect([socket.sent.length, socket.ends, headListeners.size]).toEqual([2, [1008], 0]);
    await clock.advance(1_000);
    expect(socket.ends).toEqual([1008, "terminated"]);
    socket.say(SUBSCRIBE);
    await clock.advance(60_000);
    expect([socket.sent.length, headListeners.size, clock.armedTimers]).toEqual([2, 0, 0]);
  });

  it.each([
    ["many messages", 1_000, "{}"],
    ["large ones", 2, "0".repeat(5 * MIB)],
    // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  ])("is paused while %s wait for their responses", async (_, count, text) => {
    const waiting: ((posted: Posted) => void)[] = [];
    const { clock, socket } = open(() => new Promise((resolve) => void waiting.push(resolve)));
    for (let n = 1; n < count; n++) socket.say(text);
    expect(socket.isPaused).toBe(false);
    socket.say(text);
    expect(socket.isPaused).toBe(true);
    waiting[0]?.({ status: 200, body: "{}" });
    await clock.advance(0);
    expect(socket.isPaused).toBe(false);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/log-subscription.ts
  it("is closed if a message exceeds the byte budget of the API key", async () => {
    const { socket, opened, bytes } = open();
    const others = bytes("shop");
    others.grow(12 * MIB);
    opened.received(3 * MIB);
    expect(socket.ends).toEqual([]);
    opened.received(2 * MIB);
    expect(socket.ends).toEqual(["terminated"]);
    others.grow(4 * MIB);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/log-subscription.ts
  it("is closed if a message is still incomplete after two pings", async () => {
    const { clock, socket, opened } = open();
    for (let n = 0; n < 3; n++) {
      opened.received(6);
      socket.emit("pong");
      await clock.advance(15_000);
    }
    expect(socket.ends).toEqual([]);
    opened.received(100);
    socket.emit("pong");
    await clock.advance(15_000);
    opened.received(6);
    socket.emit("pong");
    expect(socket.ends).toEqual([]);
    await clock.advance(15_000);
    expect(socket.ends).toEqual(["terminated"]);
  });

  it("gets error -32005 for a message or a filter beyond the byte budget of its API key", async () => {
    const { clock, socket, bytes } = open(async () => ({ status: 200, body: NONE.replace("none", "_") }));
    const filter = { address: Array.from({ length: 1_000 }, () => "0x".padEnd(42, "a")) };
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["logs", filter] });
    const others = bytes("shop");
    others.grow(16 * MIB - text.length - 1);
    socket.say(text);
    await clock.advance(0);
    expect(JSON.parse(socket.sent[0] ?? "")).toMatchObject({ id: 1, error: { code: -32005 } });
    others.grow(text.length + 1);
    socket.say('{"jsonrpc":"2.0","id":7,"method":"eth_chainId"}');
    await clock.advance(0);
    expect(JSON.parse(socket.sent[1] ?? "")).toMatchObject({ id: 7, error: { code: -32005 } });
    expect(socket.ends).toEqual([]);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/log-subscription.ts
  it("is closed if all sockets of its API key together read too slowly", async () => {
    const { clock, socket, backlog } = open(async () => ({ status: 200, body: "x".repeat(600) }));
    socket.say("{}");
    await clock.advance(0);
    for (const left of socket.taken.splice(0)) left();
    socket.say("{}");
    await clock.advance(0);
    expect([socket.sent.length, socket.ends]).toEqual([2, []]);
    socket.say("{}");
    await clock.advance(0);
    expect([socket.sent.length, socket.ends]).toEqual([2, [1008]]);
    socket.emit("close");
    for (const left of socket.taken) left();
    backlog("shop").grow(1_000);
  });

  it("stays open while calls are refused temporarily", async () => {
    const { clock, socket } = open(async () => ({ status: 429, body: '{"detail":"too many requests"}' }));
    socket.say('[{"jsonrpc":"2.0","id":5,"method":"eth_chainId"},{"jsonrpc":"2.0","id":6,"method":"eth_chainId"}]');
    await clock.advance(0);
    const error = { code: -32005, message: "too many requests" };
    expect(JSON.parse(socket.sent[0] ?? "")).toMatchObject([
      { id: 5, error },
      { id: 6, error },
    ]);
    expect(socket.ends).toEqual([]);
  });
});
