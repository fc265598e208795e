import type { Fence, Lane } from "../domain/lane.ts";

/** Result of deleting completions from the feed, with the feed's new beginning. */
export interface FeedShortened {
  readonly completions: number;
  /** Time of the oldest completion that is kept; null if there is none. */
  readonly oldestAt: Date | null;
}

/**
 * Deletion of old rows (domain/retention.ts), in batches that take milliseconds. Every method throws like
 * `LaneStore.commit`; after an unknown outcome it may be called again.
 */
export interface RetentionStore {
  /**
   * Deletes completions older than this, lowest number first, and raises the mark below which callers get
   * `FEED_TRUNCATED`.
   */
  shortenFeed(ageMs: number, most: number): Promise<FeedShortened>;
  /** Those of these lanes that have transactions to delete. The read locks nothing. */
  lanesWithOld(lanes: readonly Lane[], ageMs: number): Promise<readonly Lane[]>;
  /**
   * Lanes without an owner, whose signer no live instance has, and whose history is not in doubt. The read locks
   * nothing.
   */
  abandonedLanes(): Promise<readonly Lane[]>;
  /**
   * Deletes transactions, in lanes that these terms still own, that have been final and no longer watched for this
   * long. Hashes of their request ids stay. Returns the number deleted; unless it is 0, there may be more.
   */
  removeOld(fences: readonly Fence[], ageMs: number, most: number): Promise<number>;
  /** Deletes hashes of request ids whose transactions were deleted longer ago than this. */
  forgetRequestIds(ageMs: number, most: number): Promise<number>;
}
