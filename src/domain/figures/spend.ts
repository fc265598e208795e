/**
 * Ranks of the signers that pay most, by lane and day (UTC). A range of 24 hours or of a week is thus ranked by one or
 * two rows for each lane and day, instead of one for each hour. A row has the sum from the day's start to the end of
 * each hour, so that any whole hours of the day are the difference of two values.
 *
 * Ranks are rounded to 15 digits. Amounts are never read from them, but from the buckets of the signers that they
 * select (figures.ts).
 */
import type { Address } from "../lane.ts";
import { bucketStart, HOUR_S } from "./figures.ts";

export const DAY_S = 86_400;

/** One day of a lane as a node stores it, with what this node has counted. */
export interface SpendRow {
  /** Start of the day. */
  readonly at: Date;
  readonly chainId: number;
  readonly signer: Address;
  /** Rank from the start of the day to the end of its first, second, ... hour, up to the last hour with an outcome. */
  readonly ranks: readonly number[];
}

/** Ranks of one lane and day that are being counted. */
export class Spend {
  readonly ranks: number[] = [];

  /**
   * Adds outcomes of an hour that is not before the last one. Each outcome counts as one wei beside its fees, so that
   * signers of a chain without fees are ranked by their number.
   */
  add(at: Date, { completed, fees }: { readonly completed: number; readonly fees: bigint }): void {
    const hour = at.getUTCHours();
    while (this.ranks.length <= hour) this.ranks.push(this.ranks.at(-1) ?? 0);
    this.ranks[hour] = (this.ranks[hour] ?? 0) + Number(fees) + completed;
  }
}

/** The whole hours of a range, as the days that they begin and end in. */
export function daysOf({ from, to }: { readonly from: Date; readonly to: Date }) {
  const hours = (from: Date, to: Date) => (to.getTime() - from.getTime()) / (HOUR_S * 1_000);
  const first = bucketStart(from, DAY_S);
  const last = bucketStart(new Date(to.getTime() - 1), DAY_S);
  /** `before`: hours of the first day before the range. `until`: hours of the last day up to the end of the range. */
  return { first, before: Math.floor(hours(first, from)), last, until: Math.ceil(hours(last, to)) };
}
