/**
 * How long a node that lost its lanes because it was silent leaves them to others: a lease duration, twice as long with each
 * repeat, so that one that stalls again and again does not make its lanes wander. Forgotten once it has kept its lease for
 * as long as the longest of these.
 */
export interface Silences {
  /** In a row; each soon enough after the one before. */
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
