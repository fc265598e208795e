import type { Fence, Lane } from "../domain/lane.ts";

/** What left the feed, and where it begins now. */
export interface FeedShortened {
  readonly completions: number;
  /** Of the first that is kept; null: none is. */
  readonly oldestAt: Date | null;
}

/**
 * What leaves by retention (domain/retention.ts), in batches that are over within milliseconds. Every method throws as
 * `LaneStore.commit` does; one whose outcome is unknown may be called again.
 */
export interface RetentionStore {
  /**
   * From now on no program registers that does not know the hashes of request ids: it would do a late repeat again. Null:
   * so it is. Else the node that runs and is too old; nothing leaves before it is gone.
   */
  closeToOlder(): Promise<{ readonly nodeId: string; readonly version: string } | null>;
  /** Completions older than this, lowest first, with the mark below which callers are told `FEED_TRUNCATED`. */
  shortenFeed(ageMs: number, most: number): Promise<FeedShortened>;
  /** Those of these lanes that have transactions to leave. Nothing is locked. */
  lanesWithOld(lanes: readonly Lane[], ageMs: number): Promise<readonly Lane[]>;
  /** Lanes that nobody owns, whose signer no live instance has, and whose history is not in doubt. Nothing is locked. */
  abandonedLanes(): Promise<readonly Lane[]>;
  /** Transactions of the lanes that these terms still hold, final and past their watch for so long; their request ids stay as hashes. How many: there are more unless it is none. */
  removeOld(fences: readonly Fence[], ageMs: number, most: number): Promise<number>;
  /** Hashes of request ids whose transactions left longer ago than this. */
  forgetRequestIds(ageMs: number, most: number): Promise<number>;
}
