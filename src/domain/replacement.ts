/** What a payload pays that somebody decided to put in the place of another: the market's price, and always enough. */
import { type FeeMarket, type Fees, priceFirstAttempt } from "./fees.ts";
import { type RepricingStrategy, type RepricingView, reprice } from "./repricing.ts";

const NO_MARKET: FeeMarket = { baseFees: [], priorityFees: [], gasPrice: 0n };
const NO_CEILING = 1n << 256n;

/** Whoever decided it wants it mined now: what a first payload would offer, whether or not the standing one is below. */
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

function viewOf(standing: Fees, market: FeeMarket): RepricingView {
  return { first: standing, standing, refused: false, market, attempts: 1 };
}
