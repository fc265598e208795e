/**
 * How a chain's blocks come, on the clock of the node that sees them: an endpoint that stands still still answers, and a block's own
 * timestamp is the word of whoever made it. Pure.
 */

export interface BlockPace {
  readonly head: number | null;
  /** Monotonic: when the head was first seen. */
  readonly sinceMs: number;
  /** Milliseconds per block of the last changes, oldest first. */
  readonly spansMs: readonly number[];
}

export const NO_BLOCKS: BlockPace = { head: null, sinceMs: 0, spansMs: [] };

const KEPT = 32;
/** Fewer say nothing about what is usual. */
const ENOUGH = 8;
/** Chains that mine on demand have no usual time: some of their blocks take many times as long as most. */
const REGULAR = 4;
const STALLED_TIMES = 10;
const STALLED_LEAST_MS = 30_000;
/** On a chain without a usual time, while transactions wait for a block. */
const STALLED_UNUSUAL_MS = 120_000;

export function blockSeen({ head, sinceMs, spansMs }: BlockPace, number: number, nowMs: number): BlockPace {
  if (number === head) return { head, sinceMs, spansMs };
  const blocks = head === null ? 0 : number - head;
  const isProgress = blocks > 0;
  const spans = isProgress ? [...spansMs, (nowMs - sinceMs) / blocks].slice(-KEPT) : spansMs;
  return { head: number, sinceMs: nowMs, spansMs: spans };
}

/** What one block usually takes; null: too few were seen, or they come as they like. */
export function usualBlockMs({ spansMs }: BlockPace): number | null {
  if (spansMs.length < ENOUGH) return null;
  const sorted = [...spansMs].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1] as number;
  const late = sorted[Math.ceil(sorted.length * 0.9) - 1] as number;
  return late <= REGULAR * median ? median : null;
}

/** No new block for ten times what one usually takes. `awaitedMs`: for how long a transaction has waited for one; null: none does. */
export function isStalled(pace: BlockPace, nowMs: number, awaitedMs: number | null): boolean {
  if (pace.head === null) return false;
  const usualMs = usualBlockMs(pace);
  const ageMs = nowMs - pace.sinceMs;
  if (usualMs === null) return awaitedMs !== null && Math.min(ageMs, awaitedMs) >= STALLED_UNUSUAL_MS;
  return ageMs >= Math.max(STALLED_TIMES * usualMs, STALLED_LEAST_MS);
}
