/**
 * When the owner of a lane asks the database whose `validUntil` is over, and tries to cancel what is. Each function says what
 * happened and gives the pace that follows.
 */
import type { LanePace } from "./lane-pace.ts";
import { AT_ONCE, at, isDue, NEVER } from "./when.ts";

/** Two clocks are never one, and the database's may be set: so its word is asked for after this long at the latest. */
const ASK_ABOUT_TIME_MS = 60_000;

/** A transaction is to be mined within this long. The earliest of them counts. */
export function expiryAhead(pace: LanePace, nowMs: number, leftMs: number): LanePace {
  const atMs = nowMs + Math.min(Math.max(0, leftMs), ASK_ABOUT_TIME_MS);
  const { expiry } = pace;
  const isEarlier = expiry.kind === "at once" || (expiry.kind === "at" && expiry.ms <= atMs);
  return isEarlier ? pace : { ...pace, expiry: at(atMs) };
}

/** Some transaction may be past its time already. */
export const expiryLookDue = (pace: LanePace): LanePace => ({ ...pace, expiry: AT_ONCE });

/** Nobody has asked yet whose time is over: until then nothing may be signed that could be too late. */
export const isExpiryLookOwed = ({ expiry }: LanePace): boolean => expiry.kind === "at once";

export const expiryAsked = (pace: LanePace): LanePace => ({ ...pace, expiry: NEVER });

/** The database said which are past it. What is being tried to cancel keeps its pace. */
export function overdueSeen(pace: LanePace, txIds: readonly string[]): LanePace {
  const { overdue: before } = pace;
  if (txIds.length === 0 && before.size === 0) return pace;
  return { ...pace, overdue: new Map(txIds.map((txId) => [txId, before.get(txId) ?? AT_ONCE])) };
}

/** It could not be cancelled now. */
export function cancelPutOff(pace: LanePace, txId: string, nextMs: number): LanePace {
  return { ...pace, overdue: new Map(pace.overdue).set(txId, at(nextMs)) };
}

/** Nothing is to be done about its time any more. */
export function overdueDone(pace: LanePace, txId: string): LanePace {
  const overdue = new Map(pace.overdue);
  overdue.delete(txId);
  return { ...pace, overdue };
}

/** Whether a time may be over by now, or something is to be tried about one that was. */
export function isTimeDue(pace: LanePace, nowMs: number): boolean {
  return isDue(pace.expiry, nowMs) || (pace.overdue.size > 0 && overdueNow(pace, nowMs).length > 0);
}

export function overdueNow({ overdue }: LanePace, nowMs: number): readonly string[] {
  return [...overdue].flatMap(([txId, when]) => (isDue(when, nowMs) ? txId : []));
}
