/**
 * One WebSocket at `/rpc`. What it says is asked as a `POST` of the same path would be, with the same headers: so each message
 * is let in, limited and answered by the very same code, and a key that was deleted meanwhile has lost the socket with its
 * next message or ping, whichever comes first. Here is only what HTTP does not have: subscriptions, and a connection that stays.
 */

import { FencepostError } from "../../../domain/errors.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Held } from "../held-bytes.ts";
import { refusePacket } from "../rpc/answer-packet.ts";
import { NO_SUCH_METHOD } from "../rpc/error-codes.ts";
import type { HeadListener, NewHead } from "../rpc/head-announcer.ts";
import { refuseManyNames } from "../rpc/log-filters.ts";
import { RpcFailure, type RpcItem, type RpcOutcome, readPacket, result, writeAnswer } from "../rpc/packet.ts";
import { LogSubscription } from "./log-subscription.ts";
import type { WebSocketLike } from "./ws-package.ts";

export interface Posted {
  readonly status: number;
  readonly body: string;
}

export interface RpcSocketOptions {
  readonly clock: Pick<Clock, "after" | "sleep">;
  /** What a POST with this body is answered with. */
  readonly post: (text: string) => Promise<Posted>;
  /** The returned function ends it. */
  readonly hearHeads: (listener: HeadListener) => Promise<() => void>;
  /** In the name of its key: what it says and has kept here, and what it is sent and has not taken. */
  readonly hold: { readonly received: () => Held; readonly sent: () => Held };
}

const PING_EVERY_MS = 15_000;
const MOST_SUBSCRIPTIONS = 32;
/** While so much of what it said is not answered, no more is read from it. */
const IN_HAND = { messages: 1_000, bytes: 8 * 1024 * 1024 };
/** Of what was sent to it and not taken. */
const MOST_BACKLOG_BYTES = 8 * 1024 * 1024;
/** RFC 6455, 7.4.1. */
const GOING_AWAY = 1001;
const NOT_TEXT = 1003;
const REFUSED = 1008;
const FAILED = 1011;
/** For the other side to answer that it closes. */
const LAST_WORD_MS = 1_000;
const LIMIT_EXCEEDED = -32005;
const INVALID_PARAMS = -32602;
/** Of whoever may be at `/rpc` at all. */
export const STILL_ALLOWED = '{"jsonrpc":"2.0","id":0,"method":"eth_chainId"}';

export class RpcSocket {
  private readonly socket: WebSocketLike;
  private readonly options: RpcSocketOptions;
  private readonly subscriptions = new Map<string, () => void>();
  private readonly inHand = { messages: 0, bytes: 0 };
  /** Of a message that has begun and not ended. */
  private readonly begun: { readonly held: Held; bytes: number; atLastPing: number };
  private readonly backlog: Held;
  private lastSubscription = 0;
  private isAlive = true;
  private isLeaving = false;
  private isClosed = false;
  /** Its connection, and everything that waited in it. */
  private isGone = false;
  private cancelPing: () => void = () => undefined;

  constructor(socket: WebSocketLike, options: RpcSocketOptions, onClosed: () => void) {
    this.socket = socket;
    this.options = options;
    this.begun = { held: options.hold.received(), bytes: 0, atLastPing: 0 };
    this.backlog = options.hold.sent();
    socket.on("message", (data, isBinary) => {
      this.forgetBegun();
      if (isBinary) this.close(NOT_TEXT, "only text is understood");
      else void this.answer(data.toString("utf8"));
    });
    socket.on("pong", (data) => {
      this.isAlive = true;
      this.received(-frameOf(data));
    });
    socket.on("ping", (data) => this.received(-frameOf(data)));
    // What is wrong with a frame, `ws` has told the other side; what is wrong with the connection ends it.
    socket.on("error", () => socket.terminate());
    socket.on("close", () => {
      this.end();
      this.isGone = true;
      this.backlog.release();
      onClosed();
    });
    this.pingLater();
  }

  /** So many bytes more came in: of a message that ends, or of one that never does. */
  received(bytes: number): void {
    if (this.isClosed) return;
    if (grown(this.begun.held, bytes) === null) {
      this.begun.bytes += bytes;
      return;
    }
    // Not closed with a code: until the other side has answered that, `ws` would go on reading the message.
    this.end();
    this.socket.terminate();
  }

  /** Nothing more is read; what it has asked is answered, and then it is closed. */
  leave(): void {
    this.isLeaving = true;
    this.pace();
  }

  terminate(): void {
    this.socket.terminate();
  }

  private async answer(text: string): Promise<void> {
    if (this.isClosed) return;
    const held = this.options.hold.received();
    this.count(1, text.length);
    const answer = await this.answerTo(text, held).catch(() => null);
    if (answer !== null) this.send(answer);
    else this.close(REFUSED, "not allowed any more, or something unforeseen happened");
    held.release();
    this.count(-1, -text.length);
  }

  private forgetBegun(): void {
    this.begun.held.release();
    this.begun.bytes = 0;
    this.begun.atLastPing = 0;
  }

  /** Null: it may say nothing here any more. */
  private async answerTo(text: string, held: Held): Promise<string | null> {
    const refusal = grown(held, text.length);
    if (refusal !== null) return refusePacket(JSON.parse(text), refusal);
    const { status, body } = await this.options.post(text);
    if (status === 401 || status === 403) return null;
    if (status !== 200) return refusePacket(JSON.parse(text), new RpcFailure(LIMIT_EXCEEDED, detailOf(body)));
    const call = /"eth_(un)?subscribe"/.test(text) ? soleCall(text) : null;
    // Over HTTP there is no such method, for who may read; who may not was told that.
    if (call === null || !body.includes(`"code":${NO_SUCH_METHOD}`)) return body;
    if (call.method === "eth_subscribe") return writeAnswer(call.id, await this.subscribe(call));
    return call.method === "eth_unsubscribe" ? writeAnswer(call.id, this.unsubscribe(call)) : body;
  }

  private async subscribe({ params }: RpcItem): Promise<RpcOutcome> {
    const [kind, filter] = Array.isArray(params) ? params : [];
    if (kind !== "newHeads" && kind !== "logs") {
      const named = JSON.stringify(kind ?? null).slice(0, 50);
      return new RpcFailure(NO_SUCH_METHOD, `no ${named} subscription here: there are newHeads and logs`);
    }
    if (this.subscriptions.size >= MOST_SUBSCRIPTIONS) {
      return new RpcFailure(LIMIT_EXCEEDED, `a connection has at most ${MOST_SUBSCRIPTIONS} subscriptions`);
    }
    const id = `0x${(++this.lastSubscription).toString(16)}`;
    const held = this.options.hold.received();
    this.subscriptions.set(id, () => undefined);
    const tell = (told: unknown) => {
      const params = { subscription: id, result: told };
      this.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
    };
    const listener = kind === "newHeads" ? ({ header }: NewHead) => tell(header) : await this.logs(filter, tell, held);
    if (listener instanceof RpcFailure) {
      this.subscriptions.delete(id);
      held.release();
      return listener;
    }
    const stopHearing = await this.options.hearHeads(listener);
    const stop = () => {
      stopHearing();
      held.release();
    };
    if (this.isClosed) stop();
    else this.subscriptions.set(id, stop);
    return result(id);
  }

  /** Whether the chain takes the filter is tried at once: it would be of no use to hear that with the first block. */
  private async logs(filter: unknown, tell: (log: unknown) => void, held: Held): Promise<HeadListener | RpcFailure> {
    const wanted = filterIn(filter);
    if (wanted === null) return new RpcFailure(INVALID_PARAMS, "a subscription to logs has address and topics alone");
    const refusal = tooWide(wanted) ?? grown(held, JSON.stringify(wanted).length);
    if (refusal !== null) return refusal;
    const ask = async (blocks: object): Promise<{ readonly result?: unknown; readonly error?: RpcFailure }> => {
      const call = { jsonrpc: "2.0", id: 0, method: "eth_getLogs", params: [{ ...wanted, ...blocks }] };
      const { status, body } = await this.options.post(JSON.stringify(call));
      return status === 200 ? JSON.parse(body) : {};
    };
    const { error } = await ask({ fromBlock: "latest", toBlock: "latest" });
    if (error !== undefined) return new RpcFailure(error.code, error.message, error.data);
    const logsOf = async (blockHash: string) => {
      const { result: logs } = await ask({ blockHash });
      return Array.isArray(logs) ? logs : null;
    };
    const fail = () =>
      this.close(FAILED, "a block's logs are not to be had: connect again, and ask for what was missed");
    return new LogSubscription({ clock: this.options.clock, logsOf, tell, fail, held }).hear;
  }

  private unsubscribe({ params }: RpcItem) {
    const [id] = Array.isArray(params) ? params : [];
    this.subscriptions.get(String(id))?.();
    return result(this.subscriptions.delete(String(id)));
  }

  private send(text: string): void {
    if (this.isClosed) return;
    if (this.socket.bufferedAmount > MOST_BACKLOG_BYTES) {
      this.close(REFUSED, "it takes too long to read what it is sent");
    } else if (grown(this.backlog, text.length) !== null) {
      this.close(REFUSED, "the WebSockets of this key, or of this node, are sent more than they read");
    } else {
      this.socket.send(text, () => {
        if (!this.isGone) this.backlog.grow(-text.length);
      });
    }
  }

  private count(messages: number, bytes: number): void {
    this.inHand.messages += messages;
    this.inHand.bytes += bytes;
    this.pace();
  }

  private pace(): void {
    const { messages, bytes } = this.inHand;
    if (this.isClosed) return;
    if (this.isLeaving && messages === 0) this.close(GOING_AWAY, "this node is leaving: connect again");
    else if (this.isLeaving || messages >= IN_HAND.messages || bytes >= IN_HAND.bytes) this.socket.pause();
    else this.socket.resume();
  }

  private pingLater(): void {
    this.cancelPing = this.options.clock.after(PING_EVERY_MS, () => void this.ping());
  }

  private async ping(): Promise<void> {
    // A message that was not whole at the last ping, and is not yet: whoever sends it pays for it with the socket.
    const isStalled = this.begun.atLastPing > 0;
    if (!this.isAlive || isStalled) return this.socket.terminate();
    this.begun.atLastPing = this.begun.bytes;
    this.isAlive = false;
    this.socket.ping();
    this.pingLater();
    const { status } = await this.options.post(STILL_ALLOWED).catch(() => ({ status: 503 }));
    if (status === 401 || status === 403) this.close(REFUSED, "the API key is not valid any more");
  }

  private close(code: number, reason: string): void {
    if (this.isClosed) return;
    this.end();
    this.socket.close(code, reason);
    // Also what does not fit into the connection any more is given up then.
    this.cancelPing = this.options.clock.after(LAST_WORD_MS, () => this.socket.terminate());
    this.socket.resume();
  }

  private end(): void {
    this.isClosed = true;
    this.cancelPing();
    for (const stop of this.subscriptions.values()) stop();
    this.subscriptions.clear();
    this.forgetBegun();
  }
}

/** RFC 6455, 5.2: of a control frame of a client, two bytes, and four to mask what it carries. */
function frameOf({ length }: Buffer): number {
  return 6 + length;
}

/** Before it is written out to be tried. */
function tooWide(filter: object): RpcFailure | null {
  try {
    refuseManyNames({ ...filter });
    return null;
  } catch (error) {
    if (error instanceof FencepostError) return new RpcFailure(INVALID_PARAMS, error.message);
    throw error;
  }
}

/** Null: they are held from here on. */
function grown(held: Held, bytes: number): RpcFailure | null {
  try {
    held.grow(bytes);
    return null;
  } catch (error) {
    if (error instanceof FencepostError) return new RpcFailure(LIMIT_EXCEEDED, error.message);
    throw error;
  }
}

/** A subscription stands alone in its message: in a batch there is none. */
function soleCall(text: string): RpcItem | null {
  const { isBatch, items } = readPacket(JSON.parse(text));
  const [call] = items;
  return isBatch || call === undefined || "refused" in call ? null : call;
}

/** Null: it names blocks, or something that is not known; which blocks, a subscription decides. */
function filterIn(value: unknown): object | null {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) return null;
  return Object.keys(value).every((name) => name === "address" || name === "topics") ? value : null;
}

function detailOf(body: string): string {
  const { detail } = JSON.parse(body) as { readonly detail?: unknown };
  return typeof detail === "string" ? detail : "this node is too busy";
}
