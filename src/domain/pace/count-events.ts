/**
 * Changes of a lane's timing state (its "pace") after a comparison with the chain's transaction counts: one function
 * per event.
 */
import type { CountPace, LanePace, StandingHead } from "./lane-pace.ts";

const counted = (pace: LanePace, change: Partial<CountPace>): LanePace => ({
  ...pace,
  counts: { ...pace.counts, ...change },
});

/** The chain may have used all nonces below this one, so none of them may be given. */
export const usedBelow = ({ counts, usedBelow: seen }: LanePace): number =>
  Math.max(counts.proven, counts.reported, seen);

export interface Comparison {
  readonly proven: number;
  /** Monotonic time at which the transaction count was requested. */
  readonly askedAtMs: number;
  /** Value of `failures` when the comparison began. */
  readonly after: number;
}

/**
 * A comparison with the chain's transaction count ended. If a batch failed since it began, the proven count is stored,
 * but does not count as fresh.
 */
export function countCompared(pace: LanePace, { proven, askedAtMs, after }: Comparison): LanePace {
  const { failures, proven: before } = pace.counts;
  const fresh = { comparedAtMs: askedAtMs, proven };
  return counted(pace, { unproved: null, ...(after === failures ? fresh : { proven: Math.max(before, proven) }) });
}

/**
 * A batch failed. Counts that were requested before the failure, or are still in flight, were compared with nonces that
 * the batch did not commit. So they no longer count as fresh.
 */
export const batchFailed = (pace: LanePace): LanePace =>
  counted(pace, { comparedAtMs: null, failures: pace.counts.failures + 1 });

/**
 * An endpoint reported a count above the cursor at this block. While the same count is reported, over several creates,
 * the first block stays stored. Otherwise an endpoint that is always one block late would always count as behind, and
 * could never contradict the report.
 */
export const countClaimed = (pace: LanePace, count: number, atBlock: number): LanePace =>
  pace.counts.claim?.count === count ? pace : counted(pace, { claim: { count, atBlock } });

export const claimJudged = (pace: LanePace): LanePace => counted(pace, { claim: null });

export function claimUnproved(pace: LanePace, now: Date): LanePace {
  const { claim, unproved } = pace.counts;
  return claim === null ? pace : counted(pace, { unproved: { count: claim.count, since: unproved?.since ?? now } });
}

/**
 * A check reported this transaction count. A count at or below the cursor ends the refusal of creates because of an
 * unproved count.
 */
export function countReported(pace: LanePace, reported: number, cursor: number | null = null): LanePace {
  const isOver = cursor !== null && reported <= cursor;
  return counted(pace, { reported, ...(isOver ? { unproved: null } : {}) });
}

export const checkSet = (pace: LanePace, check: CountPace["check"]): LanePace => counted(pace, { check });

export const headStands = (pace: LanePace, standing: StandingHead | null): LanePace => counted(pace, { standing });
