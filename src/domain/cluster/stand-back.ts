/**
 * A node that lost its lanes because its heartbeat was late leaves them to other nodes for some time: one lease
 * duration, doubled with each further loss, at most 32. So a node that stalls repeatedly does not move its lanes back
 * and forth. A loss counts as the first again if the one before it was at least 64 lease durations earlier.
 */
export interface Silences {
  /** Number of times that the lease was lost, each soon after the time before. */
  readonly count: number;
  readonly lastMs: number;
}

const MOST_LEASES = 32;

export function afterSilence(before: Silences | null, nowMs: number, leaseDurationMs: number): Silences {
  const isRepeat = before !== null && nowMs - before.lastMs < 2 * MOST_LEASES * leaseDurationMs;
  return { count: isRepeat ? before.count + 1 : 1, lastMs: nowMs };
}

export function standsBack(silences: Silences | null, nowMs: number, leaseDurationMs: number): boolean {
  if (silences === null) return false;
  const leases = Math.min(2 ** Math.min(silences.count - 1, 30), MOST_LEASES);
  return nowMs - silences.lastMs < leases * leaseDurationMs;
}
