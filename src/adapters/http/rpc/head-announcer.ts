/**
 * Announces new blocks to subscribers (`eth_subscribe`). It polls once for all of them, and only while there are any.
 * Blocks between two polls are announced in order, with the blocks that a reorg dropped. Block contents are forwarded
 * unchecked: no decision depends on them.
 */
import type { Clock } from "../../../ports/clock.ts";

export interface HeadAnnouncerOptions {
  readonly clock: Pick<Clock, "after">;
  /** Calls the chain; null: no answer. */
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
}

export type Header = Readonly<Record<string, unknown>> & { readonly hash: string; readonly parentHash: string };

export interface NewHead {
  readonly header: Header;
  /** Hashes of the blocks that it replaces, newest first. */
  readonly dropped: readonly string[];
}

export type HeadListener = (head: NewHead) => void;

const POLL_INTERVAL_MS = 1_000;
/** Limit of missed blocks announced at once; earlier ones are skipped. */
const MOST_MISSED = 64;
const REMEMBERED = 256;
/** Members of a block that are not in its header. */
const BODY = ["transactions", "uncles", "withdrawals", "size"];

export class HeadAnnouncer {
  private readonly options: HeadAnnouncerOptions;
  private readonly listeners = new Set<HeadListener>();
  /** Hashes of the newest blocks, oldest first. Empty: the current head is unknown, so nothing is new yet. */
  private branch: string[] = [];
  private cancelPoll: (() => void) | null = null;
  private polling: Promise<void> | null = null;

  constructor(options: HeadAnnouncerOptions) {
    this.options = options;
  }

  /** Announces every block after this promise resolves. The returned function unsubscribes. */
  async subscribe(listener: HeadListener): Promise<() => void> {
    if (this.branch.length === 0) await this.poll();
    this.listeners.add(listener);
    this.pollLater();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size > 0) return;
      this.cancelPoll?.();
      this.cancelPoll = null;
      this.branch = [];
    };
  }

  private pollLater(): void {
    if (this.listeners.size === 0) return;
    this.cancelPoll ??= this.options.clock.after(POLL_INTERVAL_MS, () => {
      void this.poll().then(() => {
        this.cancelPoll = null;
        this.pollLater();
      });
    });
  }

  private poll(): Promise<void> {
    this.polling ??= this.freshHeads()
      .then((fresh) => this.announce(fresh))
      .catch(() => undefined)
      .finally(() => {
        this.polling = null;
      });
    return this.polling;
  }

  /** Blocks not announced yet, oldest first. */
  private async freshHeads(): Promise<readonly Header[]> {
    let oldest = await this.header("eth_getBlockByNumber", "latest");
    if (oldest === null || this.branch.includes(oldest.hash)) return [];
    const fresh = [oldest];
    while (this.branch.length > 0 && !this.branch.includes(oldest.parentHash) && fresh.length < MOST_MISSED) {
      oldest = await this.header("eth_getBlockByHash", oldest.parentHash);
      if (oldest === null) break;
      fresh.unshift(oldest);
    }
    return fresh;
  }

  private announce(fresh: readonly Header[]): void {
    for (const header of fresh) {
      const isFirst = this.branch.length === 0;
      const parent = this.branch.lastIndexOf(header.parentHash);
      // Without a known parent, blocks were missed.
      const dropped = parent < 0 ? [] : this.branch.splice(parent + 1).reverse();
      this.branch = [...this.branch, header.hash].slice(-REMEMBERED);
      if (!isFirst) for (const listener of this.listeners) listener({ header, dropped });
    }
  }

  private async header(method: string, name: string): Promise<Header | null> {
    const block = await this.options.ask(method, [name, false]);
    if (!isBlock(block)) return null;
    return Object.fromEntries(Object.entries(block).filter(([member]) => !BODY.includes(member))) as Header;
  }
}

function isBlock(value: unknown): value is Header {
  if (typeof value !== "object" || value === null) return false;
  const { hash, parentHash } = value as Partial<Header>;
  return isHash(hash) && isHash(parentHash);
}

function isHash(value: unknown): boolean {
  return typeof value === "string" && /^0x[0-9a-f]{64}$/i.test(value);
}
