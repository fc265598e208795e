/**
 * Block interval of a chain, measured by this node's clock. Other sources are unreliable: an endpoint that is stuck at
 * one block still responds, and block timestamps are chosen by their producers. Pure.
 */

export interface BlockPace {
  readonly head: number | null;
  /** Monotonic time at which the newest block was first seen. */
  readonly sinceMs: number;
  /** Measured block intervals in ms per block: one value for each recent change of the newest block, oldest first. */
  readonly spansMs: readonly number[];
}

export const NO_BLOCKS: BlockPace = { head: null, sinceMs: 0, spansMs: [] };

const KEPT = 32;
/** Minimum number of measured block intervals before a usual interval can be computed. */
const ENOUGH = 8;
/**
 * Maximum ratio of slow to usual block intervals. Above it, the chain has no usual interval: it mines on demand, so
 * some blocks take many times as long as most.
 */
const REGULAR = 4;
const STALLED_TIMES = 10;
const STALLED_LEAST_MS = 30_000;
/** On a chain without a usual block interval: time without a block that counts as a stall while transactions wait. */
const STALLED_UNUSUAL_MS = 120_000;

export function blockSeen({ head, sinceMs, spansMs }: BlockPace, number: number, nowMs: number): BlockPace {
  if (number === head) return { head, sinceMs, spansMs };
  const blocks = head === null ? 0 : number - head;
  const isProgress = blocks > 0;
  const spans = isProgress ? [...spansMs, (nowMs - sinceMs) / blocks].slice(-KEPT) : spansMs;
  return { head: number, sinceMs: nowMs, spansMs: spans };
}

/** Usual block interval; null if too few intervals were measured, or if they vary too much. */
export function usualBlockMs({ spansMs }: BlockPace): number | null {
  if (spansMs.length < ENOUGH) return null;
  const sorted = [...spansMs].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1] as number;
  const late = sorted[Math.ceil(sorted.length * 0.9) - 1] as number;
  return late <= REGULAR * median ? median : null;
}

/**
 * True if the chain has stalled: no block for ten usual intervals and at least 30 s. On a chain without a usual
 * interval: no block for two minutes, and a transaction has waited that long. `awaitedMs`: how long a transaction has
 * waited for a block; null: none waits.
 */
export function isStalled(pace: BlockPace, nowMs: number, awaitedMs: number | null): boolean {
  if (pace.head === null) return false;
  const usualMs = usualBlockMs(pace);
  const ageMs = nowMs - pace.sinceMs;
  if (usualMs === null) return Math.min(ageMs, awaitedMs ?? 0) >= STALLED_UNUSUAL_MS;
  return ageMs >= Math.max(STALLED_TIMES * usualMs, STALLED_LEAST_MS);
}
