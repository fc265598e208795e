/**
 * New heads over a WebSocket (`eth_subscribe`, `newHeads`). They are only a hint that makes the next poll sooner; their
 * contents are not read. If the connection ends it is opened again, and polling continues.
 */
import { WebSocket } from "undici";
import { type BackoffRule, backoffMs } from "../../../domain/pace/when.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Entropy } from "../../../ports/entropy.ts";

export interface NewHeadsOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly entropy: Pick<Entropy, "random">;
}

const SUBSCRIBE = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] });
const PAUSE: BackoffRule = { firstMs: 1_000, mostMs: 30_000 };
/** Longer messages are ignored: a header has some kilobytes. */
const LONGEST_MESSAGE = 1_000_000;
/** After this time without a message the connection is opened again: TCP does not notice a peer that vanished. */
const SILENT_AT_MOST_MS = 60_000;

export class NewHeads {
  private readonly options: NewHeadsOptions;
  private listener: () => void = () => undefined;
  private socket: WebSocket | null = null;
  private failures = 0;
  private cancelTimer: () => void = () => undefined;
  private closed = false;

  constructor(options: NewHeadsOptions) {
    this.options = options;
    this.open();
  }

  subscribe(listener: () => void): void {
    this.listener = listener;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.cancelTimer();
    this.socket?.close();
  }

  private open(): void {
    const socket = new WebSocket(this.options.url);
    this.socket = socket;
    const isOver = (): boolean => this.socket !== socket || this.closed;
    const end = (): void => {
      if (!isOver()) this.openLater();
    };
    socket.addEventListener("open", () => {
      if (isOver()) return socket.close();
      socket.send(SUBSCRIBE);
      this.watchSilence(end);
    });
    socket.addEventListener("message", ({ data }) => {
      if (isOver() || typeof data !== "string" || data.length > LONGEST_MESSAGE) return;
      this.watchSilence(end);
      if (!data.includes('"eth_subscription"')) return;
      this.failures = 0;
      this.listener();
    });
    socket.addEventListener("error", end);
    socket.addEventListener("close", end);
  }

  private watchSilence(end: () => void): void {
    this.cancelTimer();
    this.cancelTimer = this.options.clock.after(SILENT_AT_MOST_MS, end);
  }

  private openLater(): void {
    const { clock, entropy } = this.options;
    this.socket?.close();
    this.socket = null;
    this.failures++;
    this.cancelTimer();
    this.cancelTimer = clock.after(backoffMs(PAUSE, this.failures, entropy.random()), () => this.open());
  }
}
