/**
 * Reads of the feed by many readers at once, such as a few hundred streams. Readers at the same position share one read
 * of the database, and only a few reads run at a time, so that readers far behind take little from everybody else.
 */
import type { FeedPage, QueryStore } from "../../ports/query-store.ts";

/** Largest number of reads that run at the same time; others wait in order. */
const AT_ONCE = 4;

export class SharedReads {
  private readonly store;
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  /** Reads that are not answered yet, by position. */
  private unanswered = new Map<string, Promise<FeedPage>>();

  constructor(store: Pick<QueryStore, "feed">) {
    this.store = store;
  }

  /** Called when the feed grew: a read that began before may lack the new completions, so nobody joins it any more. */
  renew(): void {
    this.unanswered = new Map();
  }

  read(after: number, limit: number): Promise<FeedPage> {
    const { unanswered } = this;
    const key = `${after} ${limit}`;
    const known = unanswered.get(key);
    if (known !== undefined) return known;
    const reading = this.inTurn(after, limit).finally(() => unanswered.delete(key));
    unanswered.set(key, reading);
    return reading;
  }

  private async inTurn(after: number, limit: number) {
    if (this.running >= AT_ONCE) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running++;
    try {
      return await this.store.feed(after, limit);
    } finally {
      // Pass the place on without a gap, so that a new reader cannot overtake the waiting ones.
      const next = this.waiting.shift();
      if (next === undefined) this.running--;
      else next();
    }
  }
}
