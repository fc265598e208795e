import type { Fence, Lane } from "../domain/lane.ts";

/** Result of a deletion from the feed, and its new beginning. */
export interface FeedShortened {
  readonly completions: number;
  /** Age of the first completion that is kept; null if there is none. */
  readonly oldestAt: Date | null;
}

/**
 * Deletes by retention (domain/retention.ts), in batches of milliseconds. Every method throws like `LaneStore.commit`;
 * after an unknown outcome it may be called again.
 */
export interface RetentionStore {
  /** Deletes completions older than this, lowest first, and moves the mark below which callers get `FEED_TRUNCATED`. */
  shortenFeed(ageMs: number, most: number): Promise<FeedShortened>;
  /** The lanes among these that have transactions to delete. Takes no lock. */
  lanesWithOld(lanes: readonly Lane[], ageMs: number): Promise<readonly Lane[]>;
  /** Lanes without an owner, whose signer no live instance has, and whose history is not in doubt. Takes no lock. */
  abandonedLanes(): Promise<readonly Lane[]>;
  /**
   * Deletes transactions of lanes that these terms still hold, final and past their watch for this long; hashes of
   * their request ids stay. Returns how many; unless it is 0, there may be more.
   */
  removeOld(fences: readonly Fence[], ageMs: number, most: number): Promise<number>;
  /** Deletes hashes of request ids whose transactions were deleted longer ago than this. */
  forgetRequestIds(ageMs: number, most: number): Promise<number>;
}
