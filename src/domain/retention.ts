/**
 * What leaves by retention, and when. Pure.
 *
 * The feed goes first, from its beginning and without a gap: what is older than the retention, up to the first completion
 * that is not. A transaction follows once it is final and past its watch, and all of its completions have left: whoever
 * reads of one in the feed finds it. Its request id stays as a hash (docs/operations/retention.md).
 */
import { isSettled, type State } from "./transitions.ts";

/** A shorter one would take away what a caller has not looked at yet, or what is still watched for a reorg. */
export const SHORTEST_RETENTION_MS = 3_600_000;

/**
 * A completion bears the time at which its database transaction began, and numbers are given as they end: of two, the later
 * number may be older by as long as one of them took, which is far less than this. So long after its completion a
 * transaction leaves.
 */
export const BEHIND_ITS_COMPLETION_MS = 600_000;

/** A row as it stands behind its lane's lock. */
export interface OldRow {
  readonly state: State;
  /** Open, or final and watched for a deep reorg. */
  readonly live: boolean;
  /** Its last step: the one that made it final. */
  readonly updatedAt: Date;
}

/** Now, by the database's clock; how long is kept; and the time of the oldest completion that the feed has. Null: it has none. */
export interface Moment {
  readonly now: Date;
  readonly ageMs: number;
  readonly oldestInFeed: Date | null;
}

export function mayLeave({ state, live, updatedAt }: OldRow, { now, ageMs, oldestInFeed }: Moment): boolean {
  if (live || !isSettled(state)) return false;
  const kept = Math.min(now.getTime() - ageMs, oldestInFeed?.getTime() ?? Number.POSITIVE_INFINITY);
  return updatedAt.getTime() < kept - BEHIND_ITS_COMPLETION_MS;
}

/** In whole days where it is so long, else in hours, rounded up. */
export function ageInWords(ms: number): string {
  const hours = Math.ceil(ms / 3_600_000);
  return hours >= 48 ? `${Math.ceil(hours / 24)} days` : `${hours} ${hours === 1 ? "hour" : "hours"}`;
}

/** The highest number of these completions, which are the lowest of the feed, through which all are older; null: none is. */
export function leavesThrough(
  lowest: readonly { readonly seq: number; readonly at: Date }[],
  olderThan: Date,
): number | null {
  const kept = lowest.findIndex(({ at }) => at >= olderThan);
  const leaving = kept === -1 ? lowest : lowest.slice(0, kept);
  return leaving.at(-1)?.seq ?? null;
}
