/**
 * Health of a node's key, judged by the signatures that transactions need; no test signatures are made. A key is marked
 * as unavailable after three failures in a row over the length of a lease. Then another node takes over the key's
 * lanes, if it has the key and has not marked it as unavailable itself. A mark expires after ten leases unless it is
 * renewed. If no signature succeeds in between, each mark lasts twice as long as the one before, so that a permanently
 * missing signer hardly moves its lanes.
 */
export interface KeyHealth {
  /** Number of failures in a row, since the last signature or since the key was last marked as unavailable. */
  readonly failures: number;
  readonly firstFailureMs: number;
  /** Number of times in a row that the key was marked as unavailable, without a successful signature in between. */
  readonly marks: number;
  /** When the key was last marked as unavailable, and until when; null if never. */
  readonly mark: { readonly atMs: number; readonly untilMs: number } | null;
}

const HEALTHY: KeyHealth = { failures: 0, firstFailureMs: 0, marks: 0, mark: null };
const FAILURES_OF_AN_ABSENCE = 3;
/**
 * How long the first mark of a key as unavailable lasts, in lease durations. Also the minimum time between two marks,
 * because each mark may move the lane.
 */
const LEASES_OF_A_MARK = 10;
const MOST_DOUBLINGS = 6;

export function isAway(health: KeyHealth, nowMs: number): boolean {
  return health.mark !== null && nowMs < health.mark.untilMs;
}

export function afterFailure(before: KeyHealth | undefined, nowMs: number, leaseMs: number): KeyHealth {
  const known = before ?? HEALTHY;
  if (known.mark !== null && isAway(known, nowMs)) {
    return { ...known, mark: { ...known.mark, untilMs: nowMs + spanMs(known.marks, leaseMs) } };
  }
  const failures = known.failures + 1;
  const firstFailureMs = failures === 1 ? nowMs : known.firstFailureMs;
  const isMarked = failures >= FAILURES_OF_AN_ABSENCE && nowMs - firstFailureMs >= leaseMs;
  if (!isMarked || wasMarked(known, nowMs, leaseMs)) return { ...known, failures, firstFailureMs };
  const marks = known.marks + 1;
  return { ...HEALTHY, marks, mark: { atMs: nowMs, untilMs: nowMs + spanMs(marks, leaseMs) } };
}

/** The key's health after a successful signature; undefined if nothing has to be remembered. */
export function afterSignature(before: KeyHealth | undefined, nowMs: number, leaseMs: number): KeyHealth | undefined {
  if (before?.mark === undefined || before.mark === null || !wasMarked(before, nowMs, leaseMs)) return undefined;
  return { ...HEALTHY, mark: { atMs: before.mark.atMs, untilMs: nowMs } };
}

function wasMarked({ mark }: KeyHealth, nowMs: number, leaseMs: number) {
  return mark !== null && nowMs - mark.atMs < LEASES_OF_A_MARK * leaseMs;
}

function spanMs(marks: number, leaseMs: number) {
  return LEASES_OF_A_MARK * leaseMs * 2 ** Math.min(marks - 1, MOST_DOUBLINGS);
}
