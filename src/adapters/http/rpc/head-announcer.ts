/**
 * New blocks of a chain, for those who subscribed to something (`eth_subscribe`): looked for once for all of them, and only while
 * there are any. Blocks that came between two looks are told as well, in order, and after a reorg which ones are gone. What a
 * block says is passed on as any answer of the chain is: nothing here is decided by it.
 */
import type { Clock } from "../../../ports/clock.ts";

export interface HeadAnnouncerOptions {
  readonly clock: Pick<Clock, "after">;
  /** The chain's answer; null: it has none now. */
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
}

export type Header = Readonly<Record<string, unknown>> & { readonly hash: string; readonly parentHash: string };

export interface NewHead {
  readonly header: Header;
  /** Hashes of blocks that it stands in place of, the newest first. */
  readonly dropped: readonly string[];
}

export type HeadListener = (head: NewHead) => void;

const LOOK_EVERY_MS = 1_000;
/** Told at once, where the chain is faster than it is looked at; what was missed beyond that is passed over. */
const MOST_MISSED = 64;
const REMEMBERED = 256;
/** Of a block, and not of its header. */
const BODY = ["transactions", "uncles", "withdrawals", "size"];

export class HeadAnnouncer {
  private readonly options: HeadAnnouncerOptions;
  private readonly listeners = new Set<HeadListener>();
  /** Hashes of the newest blocks, oldest first; empty: what stands now is not known, and so neither what is new. */
  private branch: string[] = [];
  private cancelLook: (() => void) | null = null;
  private looking: Promise<void> | null = null;

  constructor(options: HeadAnnouncerOptions) {
    this.options = options;
  }

  /** Of everything that comes after this has resolved. The returned function ends it. */
  async hear(listener: HeadListener): Promise<() => void> {
    if (this.branch.length === 0) await this.look();
    this.listeners.add(listener);
    this.lookLater();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size > 0) return;
      this.cancelLook?.();
      this.cancelLook = null;
      this.branch = [];
    };
  }

  private lookLater(): void {
    if (this.listeners.size === 0) return;
    this.cancelLook ??= this.options.clock.after(LOOK_EVERY_MS, () => {
      void this.look().then(() => {
        this.cancelLook = null;
        this.lookLater();
      });
    });
  }

  private look(): Promise<void> {
    this.looking ??= this.freshHeads()
      .then((fresh) => this.tell(fresh))
      .catch(() => undefined)
      .finally(() => {
        this.looking = null;
      });
    return this.looking;
  }

  /** Those that nobody was told of, oldest first. */
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

  private tell(fresh: readonly Header[]): void {
    for (const header of fresh) {
      const isFirst = this.branch.length === 0;
      const parent = this.branch.lastIndexOf(header.parentHash);
      // Where none of them is its parent, it follows on what was missed.
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
