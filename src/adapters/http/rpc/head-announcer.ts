/**
 * New blocks of a chain, for those who subscribed to them (`eth_subscribe`, `newHeads`): looked for once for all of them, and
 * only while there are any. Blocks that came between two looks are told as well, in order, and so are those of another branch after
 * a reorg. What a block says is passed on as any answer of the chain is: nothing here is decided by it.
 */
import type { Clock } from "../../../ports/clock.ts";

export interface HeadAnnouncerOptions {
  readonly clock: Pick<Clock, "after">;
  /** The chain's answer; null: it has none now. */
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
}

export type Header = Readonly<Record<string, unknown>> & { readonly hash: string; readonly parentHash: string };
type Listener = (header: Header) => void;

const LOOK_EVERY_MS = 1_000;
/** Told at once, where the chain is faster than it is looked at; what was missed beyond that is passed over. */
const MOST_MISSED = 64;
const REMEMBERED = 256;
/** Of a block, and not of its header. */
const BODY = ["transactions", "uncles", "withdrawals", "size"];

export class HeadAnnouncer {
  private readonly options: HeadAnnouncerOptions;
  private readonly listeners = new Set<Listener>();
  /** Hashes of blocks that were told of, or that the chain had before. */
  private known = new Set<string>();
  private cancelLook: (() => void) | null = null;
  private isLooking = false;

  constructor(options: HeadAnnouncerOptions) {
    this.options = options;
  }

  /** The returned function ends it. */
  hear(listener: Listener): () => void {
    this.listeners.add(listener);
    if (!this.isLooking && this.cancelLook === null) void this.look();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size > 0) return;
      this.cancelLook?.();
      this.cancelLook = null;
      this.known = new Set();
    };
  }

  private async look(): Promise<void> {
    this.cancelLook = null;
    this.isLooking = true;
    const fresh = await this.freshHeads().catch(() => []);
    this.isLooking = false;
    if (this.listeners.size === 0) return;
    for (const header of fresh) this.tell(header);
    this.cancelLook = this.options.clock.after(LOOK_EVERY_MS, () => void this.look());
  }

  /** Those that nobody was told of, oldest first. */
  private async freshHeads(): Promise<readonly Header[]> {
    const { known } = this;
    let oldest = await this.header("eth_getBlockByNumber", "latest");
    if (oldest === null || known.has(oldest.hash)) return [];
    const fresh = [oldest];
    while (known.size > 0 && !known.has(oldest.parentHash) && fresh.length < MOST_MISSED) {
      oldest = await this.header("eth_getBlockByHash", oldest.parentHash);
      if (oldest === null) break;
      fresh.unshift(oldest);
    }
    return fresh;
  }

  private tell(header: Header): void {
    const isFirst = this.known.size === 0;
    this.known.add(header.hash);
    for (const hash of this.known) {
      if (this.known.size <= REMEMBERED) break;
      this.known.delete(hash);
    }
    // What stands already when somebody subscribes is not new.
    if (!isFirst) for (const listener of this.listeners) listener(header);
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
