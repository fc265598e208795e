import type { Fence, Lane } from "../domain/lane.ts";

/** Result of deleting completions from the feed, with the feed's new beginning. */
export interface FeedShortened {
  readonly completions: number;
  /** Time of the oldest remaining completion; null if there is none. */
  readonly oldestAt: Date | null;
}

/**
 * Deletion of old rows (domain/cluster/retention.ts), in batches that take milliseconds. Every method throws like
 * `LaneStore.commit`; after an unknown outcome it may be called again.
 */
export interface RetentionStore {
  /**
   * Deletes completions older than `ageMs`, lowest number first. A caller who later reads the feed from a position
   * before the last deleted number gets `FEED_TRUNCATED`.
   */
  shortenFeed(ageMs: number, most: number): Promise<FeedShortened>;
  /** Filters the given lanes: returns those that have transactions or requested signatures to delete. The read locks nothing. */
  lanesWithOld(lanes: readonly Lane[], ageMs: number): Promise<readonly Lane[]>;
  /**
   * Lanes without a live owner whose signer no live instance registered. Lanes that are suspended because commits may
   * have been lost are left out. The read locks nothing.
   */
  abandonedLanes(): Promise<readonly Lane[]>;
  /**
   * Deletes transactions that became final at least `ageMs` ago, before the oldest completion in the feed, and are no
   * longer watched for reorgs. Only lanes that the caller still owns are affected. Hashes of the request ids stay.
   * Returns the number deleted; unless it is 0, there may be more.
   */
  removeOld(fences: readonly Fence[], ageMs: number, most: number): Promise<number>;
  /** Deletes the hashes of request ids whose transactions were deleted longer ago than the given age. */
  forgetRequestIds(ageMs: number, most: number): Promise<number>;
  /** Deletes records of what people did to subscribers, older than the given age; the subscribers stay. */
  forgetSubscriberDecisions(ageMs: number, most: number): Promise<number>;
}
