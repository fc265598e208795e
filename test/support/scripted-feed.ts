import type { FencepostApi } from "../../src/application/operations/calls.ts";
import { Feed } from "../../src/application/queries/reads.ts";
import type { Lane } from "../../src/domain/lane.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { CompletionRecord, FeedPage, FeedPosition } from "../../src/ports/query-store.ts";
import { CHAIN_ID, SIGNER, sampleCompletion } from "./scripted-api.ts";

export const LANE: Lane = { chainId: CHAIN_ID, signer: SIGNER };

/** A real `Feed` on completions that the test appends. */
export class ScriptedFeed {
  readonly position: { -readonly [Key in keyof FeedPosition]: FeedPosition[Key] } = {
    epoch: 1,
    lastSeq: 0,
    truncatedThrough: 0,
    epochStartsAfter: 0,
  };
  /** Number of reads of the database. */
  looks = 0;
  /** If set, every read of the database fails with it. */
  failure: Error | null = null;
  private readonly records: CompletionRecord[] = [];
  private readonly feed: Feed;

  constructor(clock: Clock) {
    this.feed = new Feed({ clock, store: { feed: (after, limit) => this.read(after, limit) } });
  }

  readonly completions: FencepostApi["completions"] = (query) => this.feed.page(query);

  append(count: number, lane: Lane = LANE): void {
    for (let left = count; left > 0; left--) {
      const seq = ++this.position.lastSeq;
      this.records.push(sampleCompletion({ seq, epoch: this.position.epoch, lane }));
    }
    this.feed.grew();
  }

  /** Begins the next epoch after the given number, as a restored backup does. */
  restore(epochStartsAfter: number): void {
    this.records.length = epochStartsAfter;
    Object.assign(this.position, { epoch: this.position.epoch + 1, epochStartsAfter });
    this.feed.grew();
  }

  /** Wakes the waiting readers. */
  wake(): void {
    this.feed.grew();
  }

  private async read(after: number, limit: number): Promise<FeedPage> {
    this.looks++;
    if (this.failure !== null) throw this.failure;
    const first = this.records.findIndex(({ seq }) => seq > after);
    return { ...this.position, items: first < 0 ? [] : this.records.slice(first, first + limit) };
  }
}
