/**
 * One WebSocket at `/rpc`. Each message is handled like a `POST` to the same path with the same headers, so admission,
 * limits and responses are the same code. If an API key is deleted, its sockets close with their next message or ping.
 * This class adds what HTTP lacks: subscriptions and a lasting connection.
 */

import type { Clock } from "../../../ports/clock.ts";
import type { Held } from "../admission/held-bytes.ts";
import { refusePacket } from "../rpc/answer-packet.ts";
import { INVALID_PARAMS, LIMIT_EXCEEDED, NO_SUCH_METHOD } from "../rpc/error-codes.ts";
import type { HeadListener, NewHead } from "../rpc/head-announcer.ts";
import { manyNames } from "../rpc/log-filters.ts";
import { listOf, RpcFailure, type RpcItem, readPacket, result, writeAnswer } from "../rpc/packet.ts";
import { logSubscription } from "./log-subscription.ts";

/** The part of a `ws` socket that is used here. */
export interface WebSocketLike {
  /** Number of bytes passed to `send` and not yet written to the network. */
  readonly bufferedAmount: number;
  /** Sends a text. `left` is called when the text was written to the connection, or lost with it. */
  send(text: string, left: () => void): void;
  ping(): void;
  close(code: number, reason: string): void;
  /** Closes the connection without a close frame. */
  terminate(): void;
  /** Stops reading from the socket until `resume`. */
  pause(): void;
  resume(): void;
  on(event: "message", listener: (data: Buffer, isBinary: boolean) => void): void;
  on(event: "ping" | "pong", listener: (data: Buffer) => void): void;
  on(event: "close" | "error", listener: () => void): void;
}

export interface Posted {
  readonly status: number;
  readonly body: string;
}

interface RpcSocketOptions {
  readonly clock: Pick<Clock, "after" | "sleep">;
  /** Performs a `POST` to `/rpc` with this body. */
  readonly post: (text: string) => Promise<Posted>;
  /** Subscribes to new blocks; the returned function unsubscribes. */
  readonly subscribeHeads: (listener: HeadListener) => Promise<() => void>;
  /** Memory budgets of the socket's API key, for received data and for unsent responses. */
  readonly hold: { readonly received: () => Held; readonly sent: () => Held };
}

const PING_EVERY_MS = 15_000;
const MOST_SUBSCRIPTIONS = 32;
/** Limits on unanswered messages; while they are reached, nothing more is read. */
const MOST_OPEN = { messages: 1_000, bytes: 8 * 1024 * 1024 };
/** Limit on sent data that the client has not read. */
const MOST_BACKLOG_BYTES = 8 * 1024 * 1024;
/** WebSocket close code: the server is going away (RFC 6455, 7.4.1). */
const GOING_AWAY = 1001;
const NOT_TEXT = 1003;
const REFUSED = 1008;
const FAILED = 1011;
/** Time to wait for the client's close frame. */
const CLOSE_TIMEOUT_MS = 1_000;
/** A call that every caller with access may make. It is used to check that the API key is still valid. */
export const STILL_ALLOWED = '{"jsonrpc":"2.0","id":0,"method":"eth_chainId"}';

export class RpcSocket {
  private readonly socket: WebSocketLike;
  private readonly options: RpcSocketOptions;
  private readonly subscriptions = new Map<string, () => void>();
  private readonly open = { messages: 0, bytes: 0 };
  /** Memory reserved for an incomplete message. */
  private readonly partial: { readonly held: Held; bytes: number; atLastPing: number };
  private readonly backlog: Held;
  private lastSubscription = 0;
  private isAlive = true;
  private isLeaving = false;
  private isClosed = false;
  /** True if the connection is closed and its pending data lost. */
  private isGone = false;
  private cancelPing: () => void = () => undefined;

  constructor(socket: WebSocketLike, options: RpcSocketOptions, onClosed: () => void) {
    this.socket = socket;
    this.options = options;
    this.partial = { held: options.hold.received(), bytes: 0, atLastPing: 0 };
    this.backlog = options.hold.sent();
    socket.on("message", (data, isBinary) => {
      this.releasePartial();
      if (isBinary) this.close(NOT_TEXT, "only text is understood");
      else void this.answer(data.toString("utf8"));
    });
    socket.on("pong", (data) => {
      this.isAlive = true;
      this.received(-frameOf(data));
    });
    socket.on("ping", (data) => this.received(-frameOf(data)));
    // Terminate on an error: `ws` has already reported a bad frame to the client, and a broken connection needs no
    // report.
    socket.on("error", () => socket.terminate());
    socket.on("close", () => {
      this.end();
      this.isGone = true;
      this.backlog.release();
      onClosed();
    });
    this.pingLater();
  }

  /** Counts received bytes, including those of a message that never ends. */
  received(bytes: number): void {
    if (this.isClosed) return;
    if (this.partial.held.grow(bytes) === null) {
      this.partial.bytes += bytes;
      return;
    }
    // End without a close frame: until the client answers one, `ws` would continue to read the message.
    this.end();
    this.socket.terminate();
  }

  /** Closes the socket when the node stops: stops reading, answers open calls, then closes. */
  leave(): void {
    this.isLeaving = true;
    this.pace();
  }

  terminate(): void {
    this.socket.terminate();
  }

  private async answer(text: string) {
    if (this.isClosed) return;
    const held = this.options.hold.received();
    this.count(1, text.length);
    const answer = await this.answerTo(text, held).catch(() => null);
    if (answer !== null) this.send(answer);
    else this.close(REFUSED, "not allowed any more, or an unexpected error");
    held.release();
    this.count(-1, -text.length);
  }

  private releasePartial() {
    this.partial.held.release();
    this.partial.bytes = 0;
    this.partial.atLastPing = 0;
  }

  /** Response to a message; null if the API key is not allowed any more. */
  private async answerTo(text: string, held: Held) {
    const refusal = grown(held, text.length);
    if (refusal !== null) return refusePacket(JSON.parse(text), refusal);
    const { status, body } = await this.options.post(text);
    if (status === 401 || status === 403) return null;
    if (status !== 200) return refusePacket(JSON.parse(text), new RpcFailure(LIMIT_EXCEEDED, detailOf(body)));
    const call = /"eth_(un)?subscribe"/.test(text) ? soleCall(text) : null;
    // Over HTTP, `eth_subscribe` is answered with "no such method" if the API key may read. So this response means that
    // the key may subscribe. Any other response is returned unchanged.
    if (call === null || !body.includes(`"code":${NO_SUCH_METHOD}`)) return body;
    if (call.method === "eth_subscribe") return writeAnswer(call.id, await this.subscribe(call));
    return call.method === "eth_unsubscribe" ? writeAnswer(call.id, this.unsubscribe(call)) : body;
  }

  private async subscribe({ params }: RpcItem) {
    const [kind, filter] = listOf(params);
    if (kind !== "newHeads" && kind !== "logs") {
      const named = JSON.stringify(kind ?? null).slice(0, 50);
      return new RpcFailure(NO_SUCH_METHOD, `no ${named} subscription: use newHeads or logs`);
    }
    if (this.subscriptions.size >= MOST_SUBSCRIPTIONS) {
      return new RpcFailure(LIMIT_EXCEEDED, `a connection has at most ${MOST_SUBSCRIPTIONS} subscriptions`);
    }
    const id = `0x${(++this.lastSubscription).toString(16)}`;
    const held = this.options.hold.received();
    this.subscriptions.set(id, () => undefined);
    const notify = (value: unknown) => {
      const params = { subscription: id, result: value };
      this.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
    };
    const listener =
      kind === "newHeads" ? ({ header }: NewHead) => notify(header) : await this.logs(filter, notify, held);
    if (listener instanceof RpcFailure) {
      this.subscriptions.delete(id);
      held.release();
      return listener;
    }
    const unsubscribe = await this.options.subscribeHeads(listener);
    const stop = () => {
      unsubscribe();
      held.release();
    };
    if (this.isClosed) stop();
    else this.subscriptions.set(id, stop);
    return result(id);
  }

  /**
   * Subscribes to logs. The filter is tried at once, so that a refusal by the chain is not delayed until the first
   * block.
   */
  private async logs(filter: unknown, notify: (log: unknown) => void, held: Held) {
    const wanted = filterIn(filter);
    if (wanted === null) return new RpcFailure(INVALID_PARAMS, "a subscription to logs has only address and topics");
    // Check the filter's size before it is serialised.
    const wide = manyNames({ ...wanted });
    if (wide !== null) return new RpcFailure(INVALID_PARAMS, wide.message);
    const refusal = grown(held, JSON.stringify(wanted).length);
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
      this.close(FAILED, "a block's logs are not available: connect again, and request the missed ones");
    return logSubscription({ clock: this.options.clock, logsOf, notify, fail, held });
  }

  private unsubscribe({ params }: RpcItem) {
    const id = String(listOf(params)[0]);
    this.subscriptions.get(id)?.();
    return result(this.subscriptions.delete(id));
  }

  private send(text: string) {
    if (this.isClosed) return;
    if (this.socket.bufferedAmount > MOST_BACKLOG_BYTES) {
      this.close(REFUSED, "the client reads too slowly");
    } else if (this.backlog.grow(text.length) !== null) {
      this.close(REFUSED, "the WebSockets of this key, or of this node, read too slowly");
    } else {
      this.socket.send(text, () => {
        if (!this.isGone) this.backlog.grow(-text.length);
      });
    }
  }

  private count(messages: number, bytes: number) {
    this.open.messages += messages;
    this.open.bytes += bytes;
    this.pace();
  }

  private pace() {
    const { messages, bytes } = this.open;
    if (this.isClosed) return;
    if (this.isLeaving && messages === 0) this.close(GOING_AWAY, "this node is shutting down: connect again");
    else if (this.isLeaving || messages >= MOST_OPEN.messages || bytes >= MOST_OPEN.bytes) this.socket.pause();
    else this.socket.resume();
  }

  private pingLater() {
    this.cancelPing = this.options.clock.after(PING_EVERY_MS, () => void this.ping());
  }

  private async ping() {
    // If a message is incomplete at two pings in a row, the client is dead or malicious.
    const isStalled = this.partial.atLastPing > 0;
    if (!this.isAlive || isStalled) return this.socket.terminate();
    this.partial.atLastPing = this.partial.bytes;
    this.isAlive = false;
    this.socket.ping();
    this.pingLater();
    const { status } = await this.options.post(STILL_ALLOWED).catch(() => ({ status: 503 }));
    if (status === 401 || status === 403) this.close(REFUSED, "the API key is not valid any more");
  }

  private close(code: number, reason: string) {
    if (this.isClosed) return;
    this.end();
    this.socket.close(code, reason);
    // Terminating the socket also drops data that the connection no longer accepts.
    this.cancelPing = this.options.clock.after(CLOSE_TIMEOUT_MS, () => this.socket.terminate());
    this.socket.resume();
  }

  private end() {
    this.isClosed = true;
    this.cancelPing();
    for (const stop of this.subscriptions.values()) stop();
    this.subscriptions.clear();
    this.releasePartial();
  }
}

/** Size of a client's control frame (RFC 6455, 5.2): two bytes of header, four of mask, and its payload. */
function frameOf({ length }: Buffer) {
  return 6 + length;
}

/** Reserves bytes. Returns null if they are reserved, else the error. */
function grown(held: Held, bytes: number) {
  const refusal = held.grow(bytes);
  return refusal && new RpcFailure(LIMIT_EXCEEDED, refusal.message);
}

/** Returns the only call of a message; subscriptions are not allowed in a batch. */
function soleCall(text: string) {
  const { isBatch, items } = readPacket(JSON.parse(text));
  const [call] = items;
  return isBatch || call === undefined || "refused" in call ? null : call;
}

/**
 * Reads the filter of a log subscription; null if it has other fields than address and topics. The subscription itself
 * determines the blocks.
 */
function filterIn(value: unknown) {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) return null;
  return Object.keys(value).every((name) => name === "address" || name === "topics") ? value : null;
}

function detailOf(body: string) {
  const { detail } = JSON.parse(body) as { detail?: unknown };
  return typeof detail === "string" ? detail : "this node is too busy";
}
