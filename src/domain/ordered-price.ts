/**
 * The price of a payload that an operator or the hook ordered without naming one. It is wanted now: it offers what the next
 * block takes, and enough for a pool to take it in the place of what stands, whatever the loop would offer by itself.
 *
 * What gas costs is one endpoint's answer. Up to what the loop may offer (`relative`) it is taken as it is. Above that, up to
 * the ceilings (`absolute`), the newest block that was followed must have cost half as much at least: another answer, given at
 * another time. Tips stand in no header, and stay under `relative`.
 */
import { baseFeeNow, type FeeMarket, type Fees, feeCap, larger, smaller, tipFor, under } from "./fees.ts";
import { leastReplacement } from "./replacement.ts";
import { covers, higher, isBelowMarket, tipOf, tipTaken } from "./repricing.ts";

export interface Order {
  /** In this envelope. */
  readonly like: Fees;
  /** What may stand in a pool; null: nothing does. */
  readonly standing: Fees | null;
  readonly market: FeeMarket;
  /** Of the blocks that were followed, oldest first; empty on chains without base fees. */
  readonly seenBaseFees: readonly bigint[];
}

/** The most per gas. */
export interface OrderLimits {
  readonly relative: bigint;
  readonly absolute: bigint;
}

export type OrderedPrice =
  | { readonly verdict: "offer"; readonly fees: Fees }
  /** The least that nodes take as a replacement is above the limit, and gas does not cost so much. */
  | { readonly verdict: "tooDear"; readonly least: bigint }
  /** Gas costs more than one answer may bring about, and the newest block does not say so. `allowed`: what may be offered meanwhile. */
  | { readonly verdict: "unconfirmed"; readonly needed: Fees; readonly allowed: Fees | null };

export function orderedPrice(order: Order, { relative, absolute }: OrderLimits): OrderedPrice {
  const { standing, market, seenBaseFees } = order;
  const isSure = isConfirmed(market, seenBaseFees);
  const wanted = wantedNow(order, relative, isSure);
  const least = standing === null ? null : leastReplacement(standing);
  const needed = least === null ? wanted : higher(wanted, least);
  const believed = isSure && isShort(standing, wanted, market) ? feeCap(needed) : feeCap(wanted);
  const most = smaller(absolute, isSure || isFixed(market) ? larger(relative, believed) : relative);
  const fees = under(needed, larger(most, 0n));
  const isTaken = least === null || covers(fees, least);
  if (!isSure && !isFixed(market) && most < absolute && isBelowMarket(fees, market)) {
    return { verdict: "unconfirmed", needed, allowed: isTaken ? fees : null };
  }
  return isTaken ? { verdict: "offer", fees } : { verdict: "tooDear", least: feeCap(least) };
}

/** A block doubles a base fee in six steps at most (EIP-1559): what the newest one had says what the next may have. */
function isConfirmed(market: FeeMarket, seenBaseFees: readonly bigint[]): boolean {
  const [now, newest] = [baseFeeNow(market), seenBaseFees.at(-1)];
  return now !== undefined && newest !== undefined && now <= newest * 2n;
}

/** The operator's own figure is no answer of anybody: it needs no second one. */
function isFixed({ offer }: FeeMarket): boolean {
  return offer?.isFixed === true;
}

function wantedNow({ like, market }: Order, relative: bigint, isSure: boolean): Fees {
  const chains = takenNow(like, market, relative);
  const { offer } = market;
  if (offer === undefined) return chains;
  const { maxFeePerGas, maxPriorityFeePerGas = tipOf(chains) } = offer;
  const advised = { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas } as const;
  if (!offer.isFixed) return higher(chains, under(advised, relative));
  return higher(isSure ? chains : under(chains, 0n), under(advised, maxFeePerGas));
}

/** Twice the base fee rides out six full blocks in a row. A legacy payload pays all that it offers: no more than that either. */
function takenNow(like: Fees, market: FeeMarket, relative: bigint): Fees {
  const { gasPrice } = market;
  const baseFee = baseFeeNow(market);
  if (baseFee === undefined) return higher(under(like, 0n), { type: "legacy", gasPrice });
  const tip = smaller(larger(tipFor(market), tipTaken(market)), relative);
  const cap = baseFee * 2n + tip;
  if (like.type !== "eip1559") return { type: like.type, gasPrice: smaller(larger(gasPrice, baseFee + tip), cap) };
  return { type: "eip1559", maxFeePerGas: cap, maxPriorityFeePerGas: tip };
}

/** It does not pay for the next block: then the least that replaces it is needed, too. */
function isShort(standing: Fees | null, wanted: Fees, market: FeeMarket): boolean {
  const price = wanted.type === "eip1559" ? (baseFeeNow(market) ?? 0n) + tipOf(wanted) : feeCap(wanted);
  return standing !== null && feeCap(standing) < price;
}
