/** The price of a payload by which an operator or the hook replaces another: the market's, and enough for a pool to take it. */
import { type FeeMarket, type Fees, mapFees, NO_MARKET, priceFirstAttempt } from "./fees.ts";
import { covers, type RepricingStrategy, type RepricingView, reprice } from "./repricing.ts";

const NO_CEILING = 1n << 256n;

/** A decided replacement is wanted now: it offers what a first payload would, even if the standing offer is not below. */
const decided: RepricingStrategy = {
  name: "decided",
  propose: ({ standing, market }) => priceFirstAttempt(market, { type: standing.type }, null),
};

const least: RepricingStrategy = { name: "least", propose: ({ standing }) => standing };

/** Null: the least that nodes take as a replacement of `standing` is above the ceiling. */
export function replacementFees(standing: Fees, market: FeeMarket, ceiling: bigint): Fees | null {
  const repricing = reprice(decided, viewOf(standing, market), ceiling);
  return repricing.verdict === "reprice" ? repricing.fees : null;
}

/** The least that nodes take as a replacement. */
export function leastReplacement(standing: Fees): Fees {
  const repricing = reprice(least, viewOf(standing, NO_MARKET), NO_CEILING);
  return repricing.verdict === "reprice" ? repricing.fees : standing;
}

/** What a payload offers for its place in a block. */
export interface Offer {
  readonly fees: Fees;
  /** Blobs alone. */
  readonly blobFeeCap?: bigint;
}

/** The least that nodes take in the place of `standing`: a tenth more on both fields, for blobs twice as much on all three. */
export function leastInPlaceOf({ fees, blobFeeCap }: Offer): Offer {
  if (blobFeeCap === undefined) return { fees: leastReplacement(fees) };
  return { fees: mapFees(fees, (value) => value * 2n), blobFeeCap: blobFeeCap * 2n };
}

/** Pools of blob payloads are apart from the others: one of a kind takes the place of the other kind in no pool. */
export function reaches(offered: Offer, least: Offer): boolean {
  const isBlob = offered.blobFeeCap !== undefined;
  if (isBlob !== (least.blobFeeCap !== undefined)) return false;
  return covers(offered.fees, least.fees) && (offered.blobFeeCap ?? 0n) >= (least.blobFeeCap ?? 0n);
}

function viewOf(standing: Fees, market: FeeMarket): RepricingView {
  return { first: standing, standing, refused: false, market, attempts: 1 };
}
