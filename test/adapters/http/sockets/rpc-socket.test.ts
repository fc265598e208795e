/** One connection, without a network: what is kept for it, and what of it is read. */
import { describe, expect, it } from "vitest";
import type { HeadListener } from "../../../../src/adapters/http/rpc/head-announcer.ts";
import { type Posted, RpcSocket } from "../../../../src/adapters/http/sockets/rpc-socket.ts";
import type { WebSocketLike } from "../../../../src/adapters/http/sockets/ws-package.ts";
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

  readonly send = (text: string) => void this.sent.push(text);
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
}

function open(post: (text: string) => Promise<Posted> = async () => ({ status: 200, body: NONE })) {
  const clock = createManualClock();
  const socket = new FakeSocket();
  const heard = new Set<HeadListener>();
  const hearHeads = async (listener: HeadListener) => {
    heard.add(listener);
    return () => void heard.delete(listener);
  };
  new RpcSocket(socket, { clock, post, hearHeads }, () => undefined);
  const tellHead = () => {
    for (const tell of heard) tell({ header: { hash: "0x1", parentHash: "0x0" }, dropped: [] });
  };
  return { clock, socket, heard, tellHead };
}

describe("a connection", () => {
  it("that does not take what it is sent is closed: nothing more is kept for it, and soon nothing at all", async () => {
    const { clock, socket, heard, tellHead } = open();
    socket.say(SUBSCRIBE);
    await clock.advance(0);
    expect(heard.size).toBe(1);
    socket.bufferedAmount = 8 * MIB;
    tellHead();
    expect([socket.sent.length, socket.ends]).toEqual([2, []]);
    socket.bufferedAmount++;
    tellHead();
    tellHead();
    expect([socket.sent.length, socket.ends, heard.size]).toEqual([2, [1008], 0]);
    await clock.advance(1_000);
    expect(socket.ends).toEqual([1008, "terminated"]);
    socket.say(SUBSCRIBE);
    await clock.advance(60_000);
    expect([socket.sent.length, heard.size, clock.armedTimers]).toEqual([2, 0, 0]);
  });

  it.each([
    ["many messages", 1_000, "{}"],
    ["large ones", 2, "0".repeat(5 * MIB)],
  ])("is not read on while %s of it wait for their answers", async (_, count, text) => {
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

  it("that is refused for the moment is told so under the id of each call, and stays", async () => {
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
