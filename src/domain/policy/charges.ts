/**
 * Amounts that a transaction counts against limits, as append-only entries. The first entry, at allocation, is the
 * worst case. If a further payload costs more, another entry has the difference. Once the transaction is final, entries
 * subtract the unused part, each from the hour in which it was counted.
 */
import { type Amounts, isNothing, minus, most, NOTHING, plus } from "./use.ts";

export interface Charge extends Amounts {
  /** Number of the attempt that the amount was counted for; 0: counted at allocation. */
  readonly ordinal: number;
  /**
   * Value that is transferred if this attempt is mined. It also applies to later attempts without an entry of their
   * own.
   */
  readonly moves: bigint;
  /** Start of the hour in which the amount counts, in milliseconds. */
  readonly hourMs: number;
  /**
   * True for a correction that belongs to no payload: it subtracts the unused part when the transaction is final, or
   * adds it again when the outcome is undone, as by a reorg.
   */
  readonly settles: boolean;
}

/** Sum of the amounts counted for a transaction. */
export function standing(charges: readonly Amounts[]): Amounts {
  return charges.reduce(plus, NOTHING);
}

/**
 * Amount that a new payload adds to the amount counted so far. Only one payload is mined, so the most expensive is the
 * worst case.
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
  /** True if more may have been paid than is known: then the worst case stays counted. */
  readonly unsure?: true;
  /** True if the transaction did not revert, so its value was transferred. */
  readonly succeeded: boolean;
}

export const NOTHING_PAID: Paid = { ordinal: null, gasCost: 0n, succeeded: false };

/** Entries that correct the counted amount to the amount that was paid. They subtract from the latest hours first. */
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
  // More was paid than was counted: this happens if a caller sent the transaction itself, at an unknown price.
  return isNothing(left) ? entries : [...entries, { ...last, ...left, settles: true }];
}

/**
 * Entries that undo the correction to the paid amount. Needed if the outcome is undone, as by a reorg: the worst case
 * is possible again.
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

/** Part of the remaining correction that can be subtracted from this hour: at most the amount counted in the hour. */
function takenBack(left: bigint, counted: bigint) {
  if (left >= 0n) return 0n;
  return -left < counted ? left : -counted;
}
