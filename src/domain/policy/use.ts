/**
 * Amounts used of the policy limits. They count in whole hours and days in UTC, by the database's clock. Earlier hours
 * and days no longer matter.
 */
import { larger } from "../transaction/fees.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Value and cost of a transaction, or sums of them, in wei. */
export interface Amounts {
  /** Value sent to receivers. */
  readonly value: bigint;
  /** Value plus gas × price. */
  readonly cost: bigint;
}

export const NOTHING: Amounts = { value: 0n, cost: 0n };

/** Sums of one hour and of its day. */
export interface Windows<Sum> {
  /** Start of the hour in milliseconds. The day is the one that contains this hour. */
  readonly hourMs: number;
  readonly hour: Sum;
  readonly day: Sum;
}

export type Use = Windows<Amounts>;

export const UNUSED: Use = { hourMs: 0, hour: NOTHING, day: NOTHING };

const both =
  (of: (a: bigint, b: bigint) => bigint) =>
  (a: Amounts, b: Amounts): Amounts => ({ value: of(a.value, b.value), cost: of(a.cost, b.cost) });

export const plus = both((a, b) => a + b);
export const minus = both((a, b) => a - b);
/** Combines two amounts: the larger of their values, and the larger of their costs. */
export const most = both(larger);

export function isNothing({ value, cost }: Amounts): boolean {
  return value === 0n && cost === 0n;
}

export function hourOf(ms: number): number {
  return ms - (ms % HOUR_MS);
}

function dayOf(ms: number) {
  return ms - (ms % DAY_MS);
}

/**
 * Amounts used of the limits at this time. The hour never goes back: a database transaction that waited for its lock
 * has an older time than one that overtook it, and the database's clock may jump. In these cases the amount counts in
 * the later hour.
 */
export function within(use: Use, at: Date): Use {
  return windowsAt(use, at, NOTHING);
}

/** The sums at this time, as `within`; `none` is the sum of a window that has just begun. */
export function windowsAt<Sum>(use: Windows<Sum>, at: Date, none: Sum): Windows<Sum> {
  const hourMs = hourOf(at.getTime());
  if (hourMs <= use.hourMs) return use;
  return { hourMs, hour: none, day: dayOf(hourMs) === dayOf(use.hourMs) ? use.day : none };
}

/** The hour in which an amount that is charged at this time counts. */
export function chargedHour(use: Use, at: Date): number {
  return Math.max(use.hourMs, hourOf(at.getTime()));
}

/**
 * Adds amounts to the given hour and its day. A later hour becomes the current one; an hour or day before the current
 * one stays unchanged. A negative amount subtracts.
 */
export function added(use: Use, hourMs: number, amounts: Amounts): Use {
  const now = within(use, new Date(hourMs));
  return {
    hourMs: now.hourMs,
    hour: now.hourMs === hourMs ? plus(now.hour, amounts) : now.hour,
    day: dayOf(now.hourMs) === dayOf(hourMs) ? plus(now.day, amounts) : now.day,
  };
}
