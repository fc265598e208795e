import { messageOf } from "../text/thrown.ts";
import {
  type Asked,
  baseFeeNow,
  type FeeMarket,
  type Fees,
  feeCap,
  feesLike,
  larger,
  mapFees,
  median,
  smaller,
  tipOf,
  under,
} from "../transaction/fees.ts";
import type { Attempt } from "../transaction/transaction.ts";

/** Facts about one sent but unmined transaction, on which a repricing strategy decides. Prices in wei. */
export interface RepricingView {
  /** Fees of the first attempt. */
  readonly first: Fees;
  /** The fees that a new attempt must exceed: the highest that a node accepted or called underpriced. */
  readonly standing: Fees;
  /** True if a node called the fees in `standing` underpriced. */
  readonly refused: boolean;
  /** Fee market of the last blocks. */
  readonly market: FeeMarket;
  /** Number of payloads that were signed for the transaction so far. */
  readonly attempts: number;
  /**
   * Minimum fees of the new attempt. Set only if the endpoints differ about the market, and blocks skipped the
   * transaction or a node called its fees underpriced (climbing.ts).
   */
  readonly step?: Fees;
}

/**
 * Proposes the fees of the next attempt; null if the current ones are high enough. Every proposal is then raised to the
 * minimum of a replacement and limited by the ceiling, so a strategy cannot loop or overspend.
 */
export interface RepricingStrategy {
  /** Name of the strategy in events. */
  readonly name: string;
  /** Proposes the fees of the next attempt; null if the current ones are high enough. */
  propose(view: RepricingView): Fees | null;
}

/**
 * Minimum price increase of a replacement, in percent. This is geth's default; most other nodes require the same or
 * less. Blob transactions need double the price.
 */
const REPLACEMENT_PERCENT = 10n;
/**
 * Price increase in percent after a node called the fees underpriced: the node may require more than a tenth
 * (OpenEthereum: an eighth).
 */
const REFUSED_PERCENT = 25n;
export const LAST_BLOCKS = 10;

/**
 * Strategy that follows the prices of the last blocks. It changes the fees only if they are below those prices, or if a
 * node refused them.
 */
export const marketRepricing: RepricingStrategy = {
  name: "market",
  propose(view) {
    const wanted = atMarket(view.standing, view.market);
    if (view.refused) return higher(scale(view.standing, REFUSED_PERCENT), wanted);
    return isBelowMarket(view.standing, view.market) ? wanted : null;
  },
};

/**
 * Strategy that adds a fixed share of the first fees each time, independent of the market.
 *
 * @example
 * await createFencepost({ ...options, repricing: linearRepricing(50) });
 */
export function linearRepricing(stepPercent = 25): RepricingStrategy {
  const step = BigInt(Math.max(1, Math.round(stepPercent)));
  return { name: "linear", propose: ({ first, attempts }) => scale(first, step * BigInt(attempts)) };
}

/**
 * Wraps a user's strategy. If it throws, or returns no valid price, the lane must not stop: the market strategy decides
 * instead, and `failed` gets the reason.
 */
export function guardedRepricing(own: RepricingStrategy, failed: (reason: string) => void): RepricingStrategy {
  return {
    name: own.name,
    propose(view) {
      try {
        const answer: unknown = own.propose(view);
        if (answer === null) return null;
        // If a strategy proposes fees without a type, they get the transaction type of the current fees.
        const proposed = { type: view.standing.type, ...Object(answer) };
        if (isFees(proposed)) return proposed;
        failed("the strategy proposed neither null nor fees in wei (bigint)");
      } catch (error) {
        failed(messageOf(error));
      }
      return marketRepricing.propose(view);
    },
  };
}

function isFees(proposed: unknown): proposed is Fees {
  const { type, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = Object(proposed) as Readonly<Record<string, unknown>>;
  const offered = type === "eip1559" ? [maxFeePerGas, maxPriorityFeePerGas] : [gasPrice];
  const isKnown = type === "eip1559" || type === "legacy" || type === "eip2930";
  return isKnown && offered.every((fee) => typeof fee === "bigint" && fee >= 0n);
}

/** Repricing strategies by their names in the settings. */
export const REPRICING_STRATEGIES: Readonly<Record<"on" | "linear", RepricingStrategy>> = {
  on: marketRepricing,
  linear: linearRepricing(),
};

export type Repricing =
  | { readonly verdict: "keep" }
  /** A new offer of fees. `reached`: true if the ceiling lowered it below the prices that the last blocks accepted. */
  | { readonly verdict: "reprice"; readonly fees: Fees; readonly reached: boolean }
  /** No new fees are offered: the minimum replacement price is above the ceiling. */
  | { readonly verdict: "ceiling"; readonly needed: bigint };

/**
 * Applies the rules to a strategy's proposal: it must be high enough to replace the current payload, and must not
 * exceed the ceiling.
 */
export function reprice(strategy: RepricingStrategy, view: RepricingView, ceiling: bigint): Repricing {
  const own = strategy.propose(view);
  const proposed = own !== null && view.step !== undefined ? higher(own, view.step) : (own ?? view.step ?? null);
  if (proposed === null) return { verdict: "keep" };
  const least = view.refused ? scale(view.standing, REFUSED_PERCENT) : leastReplacement(view.standing);
  const wanted = higher(least, proposed);
  const fees = under(wanted, ceiling);
  // Both tip and cap must rise, or a node calls the replacement underpriced (geth: PriceBump checks tip and cap).
  if (!covers(fees, leastReplacement(view.standing))) {
    return { verdict: "ceiling", needed: feeCap(least) };
  }
  return { verdict: "reprice", fees, reached: feeCap(wanted) > ceiling && isBelowMarket(fees, view.market) };
}

/** Highest value of each fee field over these attempts. */
export function highestOffer(attempts: readonly Attempt[]): Fees | null {
  return attempts.map(({ fees }) => fees).reduce<Fees | null>((best, fees) => (best ? higher(best, fees) : fees), null);
}

/** True if `fees` offers at least as much as `demanded` in every field. */
export function covers(fees: Fees, demanded: Fees): boolean {
  return feeCap(fees) >= feeCap(demanded) && tipOf(fees) >= tipOf(demanded);
}

/**
 * True if the fees are below the prices of the last blocks, so that the next blocks have no reason to include the
 * transaction.
 */
export function isBelowMarket(fees: Fees, market: FeeMarket): boolean {
  const baseFee = baseFeeNow(market);
  if (baseFee === undefined) return feeCap(fees) < market.gasPrice;
  const room = feeCap(fees) - baseFee;
  return room < 0n || smaller(tipOf(fees), room) < tipTaken(market);
}

/** Market price of an attempt now; the configured price source decides if there is one. */
function atMarket(like: Fees, market: FeeMarket): Fees {
  const { offer, gasPrice } = market;
  const tip = offer?.maxPriorityFeePerGas ?? tipTaken(market);
  if (offer === undefined) return priceAt(like, baseFeeNow(market), { tip, gasPrice });
  return feesLike(like, offer.maxFeePerGas, smaller(tip, offer.maxFeePerGas));
}

/**
 * Price for a base fee and tip. Twice the base fee covers six full blocks in a row. A legacy payload pays its whole
 * price, so it gets no more than the market price. Without a base fee, only the gas price counts.
 */
export function priceAt(like: Fees, baseFee: bigint | undefined, { tip, gasPrice }: Omit<Asked, "baseFee">): Fees {
  if (baseFee === undefined) return feesLike(like, gasPrice, gasPrice);
  const cap = like.type === "eip1559" ? baseFee * 2n + tip : larger(gasPrice, baseFee + tip);
  return feesLike(like, cap, tip);
}

/** Median tip of the last blocks. */
export function tipTaken({ priorityFees }: FeeMarket): bigint {
  return median(priorityFees.slice(-LAST_BLOCKS));
}

/** Raises all fees by a percentage. Rounded up: a replacement one wei below the minimum is refused. */
function scale(fees: Fees, percent: bigint): Fees {
  return mapFees(fees, (value) => larger((value * (100n + percent) + 99n) / 100n, value + 1n));
}

/** The higher value of each fee field, in the transaction type of the first. */
export function higher(a: Fees, b: Fees): Fees {
  return feesLike(a, larger(feeCap(a), feeCap(b)), larger(tipOf(a), tipOf(b)));
}

/** Minimum fees of a payload that replaces one with the given fees. */
export function leastReplacement(standing: Fees): Fees {
  return scale(standing, REPLACEMENT_PERCENT);
}

/** All prices that a payload sets: its fees and, for blobs, the blob fee cap. */
export interface Offer {
  readonly fees: Fees;
  /** Blob fee cap; set only for transactions with blobs. */
  readonly blobFeeCap?: bigint;
}

/**
 * Minimum fees that replace a payload with the given fees in a pool: a tenth more in both prices; for blob
 * transactions, double in all three.
 */
export function leastInPlaceOf({ fees, blobFeeCap }: Offer): Offer {
  if (blobFeeCap === undefined) return { fees: leastReplacement(fees) };
  return { fees: mapFees(fees, (value) => value * 2n), blobFeeCap: blobFeeCap * 2n };
}

/**
 * True if the fees reach the minimum of a replacement. Blob transactions have a pool of their own, so a payload with
 * blobs never replaces one without, nor the reverse.
 */
export function reaches(offered: Offer, least: Offer): boolean {
  const isBlob = offered.blobFeeCap !== undefined;
  if (isBlob !== (least.blobFeeCap !== undefined)) return false;
  return covers(offered.fees, least.fees) && (offered.blobFeeCap ?? 0n) >= (least.blobFeeCap ?? 0n);
}
