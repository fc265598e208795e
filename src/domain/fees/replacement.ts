/** Rules of transaction pools for replacements. */
import { type Fees, mapFees, NO_MARKET } from "../transaction/fees.ts";
import { covers, type RepricingStrategy, reprice } from "./repricing.ts";

const NO_CEILING = 1n << 256n;

const least: RepricingStrategy = { name: "least", propose: ({ standing }) => standing };

/** Minimum offer of a replacement. */
export function leastReplacement(standing: Fees): Fees {
  const view = { first: standing, standing, refused: false, market: NO_MARKET, attempts: 1 };
  const repricing = reprice(least, view, NO_CEILING);
  return repricing.verdict === "reprice" ? repricing.fees : standing;
}

/** Offer of a payload for its place in a block. */
export interface Offer {
  readonly fees: Fees;
  /** Only for blobs. */
  readonly blobFeeCap?: bigint;
}

/** Minimum offer that replaces `standing`: a tenth more in both prices; for blobs twice as much in all three. */
export function leastInPlaceOf({ fees, blobFeeCap }: Offer): Offer {
  if (blobFeeCap === undefined) return { fees: leastReplacement(fees) };
  return { fees: mapFees(fees, (value) => value * 2n), blobFeeCap: blobFeeCap * 2n };
}

/** Blob transactions have a pool of their own: a payload of one kind never replaces the other kind. */
export function reaches(offered: Offer, least: Offer): boolean {
  const isBlob = offered.blobFeeCap !== undefined;
  if (isBlob !== (least.blobFeeCap !== undefined)) return false;
  return covers(offered.fees, least.fees) && (offered.blobFeeCap ?? 0n) >= (least.blobFeeCap ?? 0n);
}
