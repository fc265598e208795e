/**
 * Amounts counted against limits for a transaction, as append-only entries: its worst case at allocation; the
 * difference if a further payload raised it; and, once the transaction is final, the unused part, subtracted from the
 * windows that were charged.
 */
import { type Amounts, isNothing, minus, most, NOTHING, plus } from "./use.ts";

export interface Charge extends Amounts {
  /** Number of the attempt that the amount was counted for; 0: at allocation. */
  readonly ordinal: number;
  /** Value transferred by this attempt's payload, and by the attempts after it. */
  readonly moves: bigint;
  /** Start of the hour in which the amount counts, in milliseconds. */
  readonly hourMs: number;
  /**
   * True if the entry belongs to no payload: it subtracts the unused part at finality, or reverses that when the
   * outcome was withdrawn.
   */
  readonly settles: boolean;
}

/** Sum of a transaction's entries. */
export function standing(charges: readonly Amounts[]): Amounts {
  return charges.reduce(plus, NOTHING);
}

/**
 * Amount that a new payload adds to the counted one. Only one payload is mined, so the most expensive is the worst
 * case.
 */
export function difference(charges: readonly Charge[], worst: Amounts): Amounts {
  const before = standing(charges);
  return minus(most(before, worst), before);
}

/** Amount paid for a final transaction. */
export interface Paid {
  /** Number of the mined attempt; null if none of ours was mined, so nothing was paid. */
  readonly ordinal: number | null;
  /** Cost in wei: gas used × price, plus other costs such as blobs or a rollup's data. */
  readonly gasCost: bigint;
  /** True if the amount paid may be higher: then the worst case stays counted. */
  readonly unsure?: true;
  /** True if the transaction did not revert, so its value was transferred. */
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
  // More was paid than was counted: a caller sent the transaction itself at an unknown price.
  return isNothing(left) ? entries : [...entries, { ...last, ...left, settles: true }];
}

/**
 * Entries that reverse the correction to the paid amount: the outcome was withdrawn, and the worst case is possible
 * again.
 */
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

/** The part of the remaining subtraction that this window's amount can cover. */
function takenBack(left: bigint, counted: bigint) {
  if (left >= 0n) return 0n;
  return -left < counted ? left : -counted;
}
