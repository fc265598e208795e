/** Changes of a lane's pace by a comparison with the chain's counts: one function per event. */
import type { CountPace, LanePace, StandingHead } from "./lane-pace.ts";

const counted = (pace: LanePace, change: Partial<CountPace>): LanePace => ({
  ...pace,
  counts: { ...pace.counts, ...change },
});

/** No nonce below may be given: the chain may have passed it. */
export const usedBelow = ({ counts, usedBelow: seen }: LanePace): number =>
  Math.max(counts.proven, counts.reported, seen);

export interface Comparison {
  readonly proven: number;
  /** When the count was asked for. Monotonic. */
  readonly askedAtMs: number;
  /** `failures` when the comparison began. */
  readonly after: number;
}

/** A comparison ended. One that began before a batch failed proves what it proves, and makes nothing fresh. */
export function countCompared(pace: LanePace, { proven, askedAtMs, after }: Comparison): LanePace {
  const { failures, proven: before } = pace.counts;
  const fresh = { comparedAtMs: askedAtMs, proven };
  return counted(pace, { unproved: null, ...(after === failures ? fresh : { proven: Math.max(before, proven) }) });
}

/** A batch failed: counts that were asked before, or are on their way, were true for a batch that did not happen. */
export const batchFailed = (pace: LanePace): LanePace =>
  counted(pace, { comparedAtMs: null, failures: pace.counts.failures + 1 });

/**
 * A count above the cursor was met at this head. The first head stays while the same is claimed, over several creates: else
 * an endpoint that is always a block late would be behind for ever, and could never contradict.
 */
export const countClaimed = (pace: LanePace, count: number, atBlock: number): LanePace =>
  pace.counts.claim?.count === count ? pace : counted(pace, { claim: { count, atBlock } });

export const claimJudged = (pace: LanePace): LanePace => counted(pace, { claim: null });

export function claimUnproved(pace: LanePace, now: Date): LanePace {
  const { claim, unproved } = pace.counts;
  return claim === null ? pace : counted(pace, { unproved: { count: claim.count, since: unproved?.since ?? now } });
}

/** A look reported this count. At or below the cursor it ends what could not be proved. */
export function countReported(pace: LanePace, reported: number, cursor: number | null = null): LanePace {
  const isOver = cursor !== null && reported <= cursor;
  return counted(pace, { reported, ...(isOver ? { unproved: null } : {}) });
}

export const checkSet = (pace: LanePace, check: CountPace["check"]): LanePace => counted(pace, { check });

export const headStands = (pace: LanePace, standing: StandingHead | null): LanePace => counted(pace, { standing });
