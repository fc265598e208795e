/**
 * What was counted for a transaction, entry by entry and never changed: its worst case where the nonce was given, the
 * difference where a further payload raised it, and once it is final what it did not use after all, taken back from the
 * windows that were charged.
 */
import { type Amounts, isNothing, minus, most, NOTHING, plus } from "./use.ts";

export interface Charge extends Amounts {
  /** The attempt that it was counted for; 0: where the nonce was given. */
  readonly ordinal: number;
  /** What that payload moves, and so every attempt from this one on. */
  readonly moves: bigint;
  /** The hour that it counts in, as milliseconds. */
  readonly hourMs: number;
  /** Not for a payload: taken back when the transaction became final, or counted again when that was withdrawn. */
  readonly settles: boolean;
}

/** What counts for a transaction now. */
export function standing(charges: readonly Amounts[]): Amounts {
  return charges.reduce(plus, NOTHING);
}

/** What a payload adds to what counts: of several only one is mined, so the dearest is the worst case. */
export function difference(charges: readonly Charge[], worst: Amounts): Amounts {
  const before = standing(charges);
  return minus(most(before, worst), before);
}

/** What was paid for a transaction that is final. */
export interface Paid {
  /** The attempt that was mined; null: none of ours, so nothing was paid for it. */
  readonly ordinal: number | null;
  /** Gas used × price, with what was paid beside that: blobs, a rollup's data. */
  readonly gasCost: bigint;
  /** It may have been more: no less is counted than the worst case. */
  readonly unsure?: true;
  /** It did not revert: its value is gone, too. */
  readonly succeeded: boolean;
}

export const NOTHING_PAID: Paid = { ordinal: null, gasCost: 0n, succeeded: false };

/** Entries that turn what counts into what was paid: taken back from the latest windows first. */
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
  // More than was counted: what a caller sent itself, whose price nobody knew.
  return isNothing(left) ? entries : [...entries, { ...last, ...left, settles: true }];
}

/** Entries that undo those: the outcome was withdrawn, and the worst case may come yet. */
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

/** Of what is to be taken back, as much as this window has. */
function takenBack(left: bigint, counted: bigint): bigint {
  if (left >= 0n) return 0n;
  return -left < counted ? left : -counted;
}
