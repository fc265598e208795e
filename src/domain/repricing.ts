/**
 * What a second payload at a nonce must pay. A node lets it into its pool in the place of the first only where both fee
 * fields are at least a tenth higher (geth `PriceBump`; the others follow it), and strictly higher in any case.
 */
import { type FeeMarket, type Fees, feeCap, priceFirstAttempt } from "./fees.ts";

/** The least that replaces what was paid before. */
export function minimumReplacement(previous: Fees): Fees {
  if (previous.type !== "eip1559") return { type: previous.type, gasPrice: bumped(previous.gasPrice) };
  const { type, maxFeePerGas, maxPriorityFeePerGas } = previous;
  return { type, maxFeePerGas: bumped(maxFeePerGas), maxPriorityFeePerGas: bumped(maxPriorityFeePerGas) };
}

/** The market's price of this moment, but never less than replaces `previous`. Null: that would be above the ceiling. */
export function replacementFees(previous: Fees, market: FeeMarket, ceiling: bigint | null): Fees | null {
  const least = minimumReplacement(previous);
  if (ceiling !== null && feeCap(least) > ceiling) return null;
  return dearer(least, priceFirstAttempt(market, { type: previous.type }, ceiling));
}

/** Field by field; the two are of one type. */
export function dearer(a: Fees, b: Fees): Fees {
  if (a.type === "eip1559" && b.type === "eip1559") {
    return {
      type: "eip1559",
      maxFeePerGas: larger(a.maxFeePerGas, b.maxFeePerGas),
      maxPriorityFeePerGas: larger(a.maxPriorityFeePerGas, b.maxPriorityFeePerGas),
    };
  }
  if (a.type === "eip1559" || b.type === "eip1559") throw new TypeError("fees of two kinds cannot be compared");
  return { type: a.type, gasPrice: larger(a.gasPrice, b.gasPrice) };
}

/** Whether a node would let `next` into the place of `previous`, as far as fees decide it. */
export function replaces(next: Fees, previous: Fees): boolean {
  const least = minimumReplacement(previous);
  // A pool compares fee cap with fee cap and tip with tip; a legacy price is both.
  return feeCap(next) >= feeCap(least) && tipCap(next) >= tipCap(least);
}

function tipCap(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxPriorityFeePerGas : fees.gasPrice;
}

function bumped(fee: bigint): bigint {
  return fee + larger(1n, (fee + 9n) / 10n);
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
