/** What a pool takes in the place of what it holds. */
import { type Fees, mapFees, NO_MARKET } from "./fees.ts";
import { covers, type RepricingStrategy, reprice } from "./repricing.ts";

const NO_CEILING = 1n << 256n;

const least: RepricingStrategy = { name: "least", propose: ({ standing }) => standing };

/** The least that nodes take as a replacement. */
export function leastReplacement(standing: Fees): Fees {
  const view = { first: standing, standing, refused: false, market: NO_MARKET, attempts: 1 };
  const repricing = reprice(least, view, NO_CEILING);
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
