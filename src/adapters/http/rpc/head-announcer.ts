/**
 * Announces new blocks to subscribers (`eth_subscribe`). One poll serves all subscribers, and runs only while there are
 * any. Blocks between two polls are announced in order, together with the blocks that a reorg dropped. Block contents
 * are forwarded unchecked, because no decision depends on them.
 */
import type { Clock } from "../../../ports/clock.ts";
import { HASH } from "./packet.ts";

interface HeadAnnouncerOptions {
  readonly clock: Pick<Clock, "after">;
  /** Calls the chain; returns null if there is no response. */
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
}

export type Header = Readonly<Record<string, unknown>> & { readonly hash: string; readonly parentHash: string };

export interface NewHead {
  readonly header: Header;
  /** Hashes of the blocks that the new block replaces after a reorg, newest first. */
  readonly dropped: readonly string[];
}

export type HeadListener = (head: NewHead) => void;

const POLL_INTERVAL_MS = 1_000;
/** Largest number of missed blocks that are announced at once; earlier ones are skipped. */
const MOST_MISSED = 64;
const REMEMBERED = 256;
/** Members of a block that are not in its header. */
const BODY = ["transactions", "uncles", "withdrawals", "size"];

/**
 * Creates a function that subscribes a listener to a chain's new blocks. It returns a promise. The listener receives
 * every block after the promise resolves; the promise's result is a function that unsubscribes.
 */
export function headAnnouncer({ clock, ask }: HeadAnnouncerOptions) {
  const listeners = new Set<HeadListener>();
  /**
   * Hashes of the chain's newest blocks, oldest first. Empty if the newest block is unknown; then no block counts as
   * new yet.
   */
  let branch: string[] = [];
  let cancelPoll: (() => void) | null = null;
  let polling: Promise<void> | null = null;

  const headerOf = async (method: string, name: string) => {
    const block = await ask(method, [name, false]);
    if (!isBlock(block)) return null;
    return Object.fromEntries(Object.entries(block).filter(([member]) => !BODY.includes(member))) as Header;
  };

  const announce = (header: Header) => {
    const isFirst = branch.length === 0;
    const parent = branch.lastIndexOf(header.parentHash);
    // If the parent is unknown, blocks were missed; then no block is reported as dropped.
    const dropped = parent < 0 ? [] : branch.splice(parent + 1).reverse();
    branch = [...branch, header.hash].slice(-REMEMBERED);
    if (!isFirst) for (const listener of listeners) listener({ header, dropped });
  };

  const announceFresh = async () => {
    let oldest = await headerOf("eth_getBlockByNumber", "latest");
    if (oldest === null || branch.includes(oldest.hash)) return;
    const fresh = [oldest];
    while (branch.length > 0 && !branch.includes(oldest.parentHash) && fresh.length < MOST_MISSED) {
      oldest = await headerOf("eth_getBlockByHash", oldest.parentHash);
      if (oldest === null) break;
      fresh.unshift(oldest);
    }
    fresh.forEach(announce);
  };

  const poll = () => {
    polling ??= announceFresh()
      .catch(() => undefined)
      .finally(() => {
        polling = null;
      });
    return polling;
  };

  const pollLater = () => {
    if (listeners.size === 0) return;
    cancelPoll ??= clock.after(POLL_INTERVAL_MS, async () => {
      await poll();
      cancelPoll = null;
      pollLater();
    });
  };

  return async (listener: HeadListener) => {
    if (branch.length === 0) await poll();
    listeners.add(listener);
    pollLater();
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      cancelPoll?.();
      cancelPoll = null;
      branch = [];
    };
  };
}

function isBlock(value: unknown): value is Header {
  if (typeof value !== "object" || value === null) return false;
  const { hash, parentHash } = value as Partial<Header>;
  return [hash, parentHash].every((each) => typeof each === "string" && HASH.test(each));
}
