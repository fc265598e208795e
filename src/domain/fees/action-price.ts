/**
 * Price of a payload that an operator or the hook requested without naming a price. It should be mined now, so it pays
 * the price for the next block, and enough to replace the current payload in a pool.
 *
 * The market price is the answer of one endpoint. Up to the limit of automatic repricing (`relative`) it is used
 * unchanged. Above that limit, up to the ceilings (`absolute`), it needs an independent confirmation: the newest block
 * that this node has read must have cost at least half as much. A block header does not contain tips, so tips stay
 * under `relative`.
 */
import {
  baseFeeNow,
  type FeeMarket,
  type Fees,
  feeCap,
  larger,
  smaller,
  tipFor,
  tipOf,
  under,
} from "../transaction/fees.ts";
import { covers, higher, isBelowMarket, leastReplacement, priceAt, tipTaken } from "./repricing.ts";

export interface PriceInput {
  /** Fees of the existing payload: the computed price must have the same transaction type. */
  readonly like: Fees;
  /** Fees of the payload that may be in a pool now; null if there is none. */
  readonly standing: Fees | null;
  readonly market: FeeMarket;
  /** Base fees of the newest blocks that this node has read, oldest first; empty on chains without base fees. */
  readonly seenBaseFees: readonly bigint[];
}

export type ActionPrice =
  | { readonly verdict: "offer"; readonly fees: Fees }
  /** No price can be offered: the minimum replacement price (`least`) is above the limit. */
  | { readonly verdict: "tooDear"; readonly least: bigint }
  /**
   * The market price is higher than one endpoint's answer may justify, and the newest block does not confirm it.
   * `allowed`: the price that may be offered meanwhile.
   */
  | { readonly verdict: "unconfirmed"; readonly needed: Fees; readonly allowed: Fees | null };

/** Computes the price. `limits`: the highest prices per gas. */
export function actionPrice(input: PriceInput, limits: { relative: bigint; absolute: bigint }): ActionPrice {
  const { relative, absolute } = limits;
  const { standing, market, seenBaseFees } = input;
  const isSure = isConfirmed(market, seenBaseFees);
  const wanted = wantedNow(input, relative, isSure);
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

/**
 * True if the newest block confirms the market: a base fee doubles in six blocks at the fastest (EIP-1559), so the
 * newest block limits the next ones.
 */
function isConfirmed(market: FeeMarket, seenBaseFees: readonly bigint[]) {
  const [now, newest] = [baseFeeNow(market), seenBaseFees.at(-1)];
  return now !== undefined && newest !== undefined && now <= newest * 2n;
}

/** True if the operator configured a fixed price, which needs no confirmation by a block. */
function isFixed({ offer }: FeeMarket) {
  return offer?.isFixed === true;
}

function wantedNow({ like, market }: PriceInput, relative: bigint, isSure: boolean): Fees {
  const chains = takenNow(like, market, relative);
  const { offer } = market;
  if (offer === undefined) return chains;
  const { maxFeePerGas, maxPriorityFeePerGas = tipOf(chains) } = offer;
  const advised = { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas } as const;
  if (!offer.isFixed) return higher(chains, under(advised, relative));
  return higher(isSure ? chains : under(chains, 0n), under(advised, maxFeePerGas));
}

/**
 * Price for the next block. A reported gas price does not raise a legacy payload above what a dynamic fee would offer.
 */
function takenNow(like: Fees, market: FeeMarket, relative: bigint): Fees {
  const baseFee = baseFeeNow(market);
  const tip = smaller(larger(tipFor(market), tipTaken(market)), relative);
  const price = priceAt(like, baseFee, { tip, gasPrice: market.gasPrice });
  return baseFee === undefined ? price : under(price, baseFee * 2n + tip);
}

/**
 * True if the fees of the current payload do not pay for the next block. Then at least the minimum replacement price is
 * needed.
 */
function isShort(standing: Fees | null, wanted: Fees, market: FeeMarket) {
  const price = wanted.type === "eip1559" ? (baseFeeNow(market) ?? 0n) + tipOf(wanted) : feeCap(wanted);
  return standing !== null && feeCap(standing) < price;
}
