/**
 * Amounts counted for a transaction, as append-only entries: its worst case at allocation; the difference if a further
 * payload raised it; and, once it is final, the unused part, subtracted from the windows that were charged.
 */
import { type Amounts, isNothing, minus, most, NOTHING, plus } from "./use.ts";

export interface Charge extends Amounts {
  /** Attempt that it was counted for; 0: at allocation. */
  readonly ordinal: number;
  /** Value of that payload, and of every attempt from this one on. */
  readonly moves: bigint;
  /** The hour that it counts in, as milliseconds. */
  readonly hourMs: number;
  /** No payload's entry: the unused part at finality, or its reversal when the outcome was withdrawn. */
  readonly settles: boolean;
}

/** Current total for a transaction. */
export function standing(charges: readonly Amounts[]): Amounts {
  return charges.reduce(plus, NOTHING);
}

/** Amount that a payload adds: only one of several is mined, so the most expensive is the worst case. */
export function difference(charges: readonly Charge[], worst: Amounts): Amounts {
  const before = standing(charges);
  return minus(most(before, worst), before);
}

/** Amount paid for a final transaction. */
export interface Paid {
  /** The mined attempt; null if none of ours was, so nothing was paid. */
  readonly ordinal: number | null;
  /** Gas used × price, plus other costs: blobs, a rollup's data. */
  readonly gasCost: bigint;
  /** The amount may be higher: then the worst case stays counted. */
  readonly unsure?: true;
  /** The transaction did not revert, so its value was transferred. */
  readonly succeeded: boolean;
}

export const NOTHING_PAID: Paid = { ordinal: null, gasCost: 0n, succeeded: false };

/** Entries that correct the counted amount to the paid one, subtracting from the latest windows first. */
export function settledCharges(charges: readonly Charge[], paid: Paid): readonly Charge[] {
  const last = charges.at(-1);
  if (last === undefined) return [];
  let left = minus(actual(charges, paid), standing(charges));
  const entries: Charge[] = [];
  for (const [hourMs, counted] of [...byHour(charges)].reverse()) {
    const change = { value: takenBack(left.value, counted.value), cost: takenBack(left.cost, counted.cost) };
    left = minus(left, change);
    if (!isNothing(change)) entries.push({ ...last, ...change, hourMs, settles: true });
  }
  // More than was counted: a caller sent it itself at an unknown price.
  return isNothing(left) ? entries : [...entries, { ...last, ...left, settles: true }];
}

/** Entries that reverse the correction: the outcome was withdrawn, and the worst case is possible again. */
export function unsettledCharges(charges: readonly Charge[]): readonly Charge[] {
  const last = charges.at(-1);
  const settling = byHour(charges.filter(({ settles }) => settles));
  return [...settling].flatMap(([hourMs, amounts]) => {
    if (last === undefined || isNothing(amounts)) return [];
    return [{ ...last, ...minus(NOTHING, amounts), hourMs, settles: true }];
  });
}

function actual(charges: readonly Charge[], { ordinal, gasCost, succeeded, unsure }: Paid): Amounts {
  if (ordinal === null) return NOTHING;
  const own = charges.findLast((charge) => !charge.settles && charge.ordinal <= ordinal);
  const value = succeeded ? (own?.moves ?? 0n) : 0n;
  const paid = { value, cost: value + gasCost };
  if (unsure !== true) return paid;
  const counted = standing(charges);
  return { value, cost: most(paid, { value, cost: counted.cost - counted.value + value }).cost };
}

function byHour(charges: readonly Charge[]): ReadonlyMap<number, Amounts> {
  const hours = new Map<number, Amounts>();
  for (const charge of charges) hours.set(charge.hourMs, plus(hours.get(charge.hourMs) ?? NOTHING, charge));
  return hours;
}

/** The part of the subtraction that this window has. */
function takenBack(left: bigint, counted: bigint) {
  if (left >= 0n) return 0n;
  return -left < counted ? left : -counted;
}
