/**
 * Updates a lane's timing state (its "pace") after a comparison with the chain's transaction counts: one function per
 * event.
 */
import type { CountPace, LanePace, StandingHead } from "./lane-pace.ts";

const counted = (pace: LanePace, change: Partial<CountPace>): LanePace => ({
  ...pace,
  counts: { ...pace.counts, ...change },
});

/** The chain may have used all nonces below this one, so none of them may be given to a transaction. */
export const usedBelow = ({ counts, usedBelow: seen }: LanePace): number =>
  Math.max(counts.proven, counts.reported, seen);

export interface Comparison {
  readonly proven: number;
  /** Monotonic time at which the transaction count was requested. */
  readonly askedAtMs: number;
  /** Value of the counter `failures` when the comparison began. */
  readonly after: number;
}

/**
 * Called when a comparison with the chain's transaction count ended. If a batch of the lane's writes failed since it
 * began, the proven count is stored, but must be requested again before it is relied on.
 */
export function countCompared(pace: LanePace, { proven, askedAtMs, after }: Comparison): LanePace {
  const { failures, proven: before } = pace.counts;
  const fresh = { comparedAtMs: askedAtMs, proven };
  return counted(pace, { unproved: null, ...(after === failures ? fresh : { proven: Math.max(before, proven) }) });
}

/**
 * Called when a batch of the lane's writes failed: transaction counts that were requested before the failure were
 * compared with nonces that the batch did not commit, so they must be requested again. Also called to force such a new
 * request when the chain's count is above the lane's next nonce (reconcile.ts).
 */
export const batchFailed = (pace: LanePace): LanePace =>
  counted(pace, { comparedAtMs: null, failures: pace.counts.failures + 1 });

/**
 * Called when an endpoint reported a count above the lane's next nonce. The block at which this count was first
 * reported stays stored, even if it is reported again. Otherwise an endpoint that is always one block late would always
 * count as behind, and could never contradict the report.
 */
export const countClaimed = (pace: LanePace, count: number, atBlock: number): LanePace =>
  pace.counts.claim?.count === count ? pace : counted(pace, { claim: { count, atBlock } });

export const claimJudged = (pace: LanePace): LanePace => counted(pace, { claim: null });

export function claimUnproved(pace: LanePace, now: Date): LanePace {
  const { claim, unproved } = pace.counts;
  return claim === null ? pace : counted(pace, { unproved: { count: claim.count, since: unproved?.since ?? now } });
}

/**
 * Called when a check reported this transaction count. An earlier, higher count that was not proven makes the lane
 * refuse creates; a count at or below the lane's next nonce ends that.
 */
export function countReported(pace: LanePace, reported: number, cursor: number | null = null): LanePace {
  const isOver = cursor !== null && reported <= cursor;
  return counted(pace, { reported, ...(isOver ? { unproved: null } : {}) });
}

export const checkSet = (pace: LanePace, check: CountPace["check"]): LanePace => counted(pace, { check });

export const headStands = (pace: LanePace, standing: StandingHead | null): LanePace => counted(pace, { standing });
