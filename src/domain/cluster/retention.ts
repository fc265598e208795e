/**
 * Retention: what is deleted, and when. Pure functions.
 *
 * The feed is deleted first, from its beginning: all completions before the first that is younger than the retention.
 * So the feed never has a gap. A transaction is deleted once it is final, no longer watched for reorgs, and all its
 * completions are deleted. So a reader of the feed always finds the transaction. Its request id stays as a hash
 * (docs/operations/retention.md).
 */
import { isSettled, type State } from "../transaction/transitions.ts";

/**
 * Minimum retention: a shorter one would delete outcomes that a caller has not read yet, or that are still watched for
 * a reorg.
 */
export const SHORTEST_RETENTION_MS = 3_600_000;

/**
 * Margin between the deletion of a completion and the deletion of its transaction. A completion's time is that at which
 * its database transaction began, but sequence numbers are assigned in commit order. So a completion may be older than
 * one with a lower number, by at most the duration of a transaction. The margin is far longer.
 */
export const BEHIND_ITS_COMPLETION_MS = 600_000;

/** A transaction's row, read under its lane's lock. */
export interface OldRow {
  readonly state: State;
  /** True if the transaction is open, or final but still checked for deep reorgs. */
  readonly live: boolean;
  /** Time of the state change that made the transaction final. */
  readonly updatedAt: Date;
}

/**
 * True if a transaction may be deleted. `now`: the database's time. `ageMs`: the retention. `oldestInFeed`: time of the
 * first completion in the whole feed; null if the feed is empty.
 */
export function mayLeave(
  { state, live, updatedAt }: OldRow,
  { now, ageMs, oldestInFeed }: { now: Date; ageMs: number; oldestInFeed: Date | null },
): boolean {
  if (live || !isSettled(state)) return false;
  const kept = Math.min(now.getTime() - ageMs, oldestInFeed?.getTime() ?? Number.POSITIVE_INFINITY);
  return updatedAt.getTime() < kept - BEHIND_ITS_COMPLETION_MS;
}

/** Duration in whole days from 48 hours on, else in hours, rounded up. */
export function ageInWords(ms: number): string {
  const hours = Math.ceil(ms / 3_600_000);
  return hours >= 48 ? `${Math.ceil(hours / 24)} days` : `${hours} ${hours === 1 ? "hour" : "hours"}`;
}

/**
 * Highest sequence number that may be deleted from the feed: its completion and all before it are older than the
 * retention. Null if there is none. `lowest`: the lowest completions of the feed.
 */
export function leavesThrough(
  lowest: readonly { readonly seq: number; readonly at: Date }[],
  olderThan: Date,
): number | null {
  const kept = lowest.findIndex(({ at }) => at >= olderThan);
  const leaving = kept === -1 ? lowest : lowest.slice(0, kept);
  return leaving.at(-1)?.seq ?? null;
}
