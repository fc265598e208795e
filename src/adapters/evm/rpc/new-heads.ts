/**
 * Subscribes to new blocks over a WebSocket (`eth_subscribe`, `newHeads`). A message about a new block is only a hint
 * that makes the next poll sooner; its contents are not read. If the connection ends it is opened again, and polling
 * continues.
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
/** Longest message that is looked at, in characters. Longer ones are ignored: a header has some kilobytes. */
const LONGEST_MESSAGE = 1_000_000;
/** Longest time without a message before the connection is opened again: TCP does not notice a peer that vanished. */
const SILENT_AT_MOST_MS = 60_000;

export function openNewHeads({ url, clock, entropy }: NewHeadsOptions) {
  let listener = (): void => undefined;
  let current: WebSocket | null = null;
  let failures = 0;
  let cancelTimer = (): void => undefined;
  let closed = false;

  function open() {
    const socket = new WebSocket(url);
    current = socket;
    const isOver = () => current !== socket || closed;
    const openLater = () => {
      if (isOver()) return;
      socket.close();
      current = null;
      failures++;
      after(backoffMs(PAUSE, failures, entropy.random()), open);
    };
    socket.addEventListener("open", () => {
      if (isOver()) return socket.close();
      socket.send(SUBSCRIBE);
      after(SILENT_AT_MOST_MS, openLater);
    });
    socket.addEventListener("message", ({ data }) => {
      if (isOver() || typeof data !== "string" || data.length > LONGEST_MESSAGE) return;
      after(SILENT_AT_MOST_MS, openLater);
      if (!data.includes('"eth_subscription"')) return;
      failures = 0;
      listener();
    });
    socket.addEventListener("error", openLater);
    socket.addEventListener("close", openLater);
  }

  function after(ms: number, act: () => void) {
    cancelTimer();
    cancelTimer = clock.after(ms, act);
  }

  open();
  return {
    subscribe(each: () => void) {
      listener = each;
    },
    async close() {
      closed = true;
      cancelTimer();
      current?.close();
    },
  };
}
