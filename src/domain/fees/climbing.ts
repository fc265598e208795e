/**
 * Raises a price in steps when two endpoints report different markets and blocks skip the transaction at the lower
 * price. It is not known which endpoint is wrong. The first step at most doubles the lower price. Each further step
 * needs more blocks without the transaction, counted after every endpoint got the previous step (broadcast.ts sends a
 * repriced payload to all).
 */
import { type Asked, baseFeeNow, type FeeMarket, type Fees, larger, smaller, tipFor } from "../transaction/fees.ts";
import { covers, priceAt } from "./repricing.ts";

/**
 * Number of blocks without the transaction, and time in ms, before the next price step. Three steps reach the higher
 * market after six blocks. The time matters on chains with several blocks a second, where inclusion takes longer than
 * two blocks.
 */
export const PASSED_OVER = { blocks: 2, ms: 1_000 } as const;

/** The next price step above the current fees; null if no higher market is reported, or the fees already reach it. */
export function nextStep(standing: Fees, market: FeeMarket): Fees | null {
  if (market.dearer === undefined) return null;
  const hasBaseFee = market.baseFees.length > 0;
  const offers = steps(market, market.dearer).map((asked) =>
    priceAt(standing, hasBaseFee ? asked.baseFee : undefined, asked),
  );
  return offers.find((fees) => !covers(standing, fees)) ?? null;
}

function steps(market: FeeMarket, dearer: Asked): readonly Asked[] {
  const baseFee = baseFeeNow(market) ?? 0n;
  const tip = tipFor(market);
  const { gasPrice } = market;
  // If the endpoints agree on the base fee, it is not doubled. The amount saved may be added to the tip instead.
  const room = dearer.baseFee > baseFee ? 0n : baseFee;
  const first: Asked = {
    baseFee: smaller(dearer.baseFee, 2n * baseFee),
    tip: smaller(dearer.tip, 2n * tip + room),
    gasPrice: smaller(dearer.gasPrice, 2n * gasPrice),
  };
  const second: Asked = {
    baseFee: between(first.baseFee, dearer.baseFee),
    tip: between(first.tip, dearer.tip),
    gasPrice: between(first.gasPrice, dearer.gasPrice),
  };
  return [first, second, dearer];
}

/** Geometric mean of two prices: it exceeds the lower by the same factor by which the higher exceeds it. */
function between(low: bigint, high: bigint) {
  const product = larger(low, 1n) * larger(high, 1n);
  let root = 1n << BigInt(Math.ceil(product.toString(2).length / 2));
  for (let next = (root + product / root) >> 1n; next < root; next = (root + product / root) >> 1n) root = next;
  return smaller(larger(root, low), larger(low, high));
}
