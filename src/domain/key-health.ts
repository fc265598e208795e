/**
 * How a node judges one of its keys by signatures that were asked for, and never by one made to find out. A key is away once it
 * failed three times in a row over the length of a lease. Others then have its lanes, where they have the key and do not find it
 * away, too. A mark that nothing renews is over after ten leases, so that the node counts as untried again; of one mark after the
 * other without a signature between them, each lasts twice as long: a signer that is gone for good hardly moves its lanes.
 */
export interface KeyHealth {
  /** In a row, since the last signature or mark. */
  readonly failures: number;
  readonly firstFailureMs: number;
  /** Marks in a row. */
  readonly marks: number;
  /** When it was last marked, and until when it is. */
  readonly mark: { readonly atMs: number; readonly untilMs: number } | null;
}

const HEALTHY: KeyHealth = { failures: 0, firstFailureMs: 0, marks: 0, mark: null };
const FAILURES_OF_AN_ABSENCE = 3;
/** Also the least time between two marks: each may move the lane. */
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

/** Undefined: nothing has to be remembered. */
export function afterSignature(before: KeyHealth | undefined, nowMs: number, leaseMs: number): KeyHealth | undefined {
  if (before?.mark === undefined || before.mark === null || !wasMarked(before, nowMs, leaseMs)) return undefined;
  return { ...HEALTHY, mark: { atMs: before.mark.atMs, untilMs: nowMs } };
}

function wasMarked({ mark }: KeyHealth, nowMs: number, leaseMs: number): boolean {
  return mark !== null && nowMs - mark.atMs < LEASES_OF_A_MARK * leaseMs;
}

function spanMs(marks: number, leaseMs: number): number {
  return LEASES_OF_A_MARK * leaseMs * 2 ** Math.min(marks - 1, MOST_DOUBLINGS);
}
