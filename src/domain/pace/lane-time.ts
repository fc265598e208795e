/**
 * Decides when the owner of a lane queries the database for transactions past their `validUntil`, and when it tries to
 * cancel them. Each function takes an event and returns the lane's new timing state ("pace").
 */
import type { LanePace } from "./lane-pace.ts";
import { AT_ONCE, at, isDue, NEVER } from "./when.ts";

/**
 * Longest time between two reads of the database's clock. Reads must be repeated, because that clock differs from the
 * node's and may be set.
 */
const ASK_ABOUT_TIME_MS = 60_000;

/** Called for a transaction with `leftMs` until its `validUntil`. Moves the next check forward if that is earlier. */
export function expiryAhead(pace: LanePace, nowMs: number, leftMs: number): LanePace {
  const atMs = nowMs + Math.min(Math.max(0, leftMs), ASK_ABOUT_TIME_MS);
  const { expiry } = pace;
  const isEarlier = expiry.kind === "at once" || (expiry.kind === "at" && expiry.ms <= atMs);
  return isEarlier ? pace : { ...pace, expiry: at(atMs) };
}

/** Some transaction may already be past its `validUntil`: check at once. */
export const expiryLookDue = (pace: LanePace): LanePace => ({ ...pace, expiry: AT_ONCE });

/**
 * True if transactions past their `validUntil` must be read from the database first. Until then nothing is signed,
 * because the transaction to sign may be one of them.
 */
export const isExpiryLookOwed = ({ expiry }: LanePace): boolean => expiry.kind === "at once";

export const expiryAsked = (pace: LanePace): LanePace => ({ ...pace, expiry: NEVER });

/**
 * Called when the database has returned the transactions past their `validUntil`. Those that are already being
 * cancelled keep their retry times.
 */
export function overdueSeen(pace: LanePace, txIds: readonly string[]): LanePace {
  const { overdue: before } = pace;
  if (txIds.length === 0 && before.size === 0) return pace;
  return { ...pace, overdue: new Map(txIds.map((txId) => [txId, before.get(txId) ?? AT_ONCE])) };
}

/** Called when the transaction could not be cancelled now. The next try is at `nextMs`. */
export function cancelPutOff(pace: LanePace, txId: string, nextMs: number): LanePace {
  return { ...pace, overdue: new Map(pace.overdue).set(txId, at(nextMs)) };
}

/** Called when the transaction's `validUntil` requires no more action. */
export function overdueDone(pace: LanePace, txId: string): LanePace {
  const overdue = new Map(pace.overdue);
  overdue.delete(txId);
  return { ...pace, overdue };
}

/** True if a `validUntil` may have passed by now, or a cancel is due. */
export function isTimeDue(pace: LanePace, nowMs: number): boolean {
  return isDue(pace.expiry, nowMs) || overdueNow(pace, nowMs).length > 0;
}

export function overdueNow({ overdue }: LanePace, nowMs: number): readonly string[] {
  return [...overdue].flatMap(([txId, when]) => (isDue(when, nowMs) ? txId : []));
}
