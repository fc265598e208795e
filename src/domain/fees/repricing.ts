import { messageOf } from "../text/thrown.ts";
import {
  baseFeeNow,
  type FeeMarket,
  type Fees,
  feeCap,
  larger,
  mapFees,
  median,
  type Offer,
  smaller,
  under,
} from "../transaction/fees.ts";
import type { Attempt } from "../transaction/transaction.ts";

/** Facts for a repricing strategy about one transaction that was sent and is not mined. In wei. */
export interface RepricingView {
  /** Offer of the first attempt. */
  readonly first: Fees;
  /** Base of a new attempt: the highest offer that a node accepted or called underpriced. */
  readonly standing: Fees;
  /** A node called `standing` underpriced. */
  readonly refused: boolean;
  /** Market of the last blocks. */
  readonly market: FeeMarket;
  /** Number of payloads signed so far. */
  readonly attempts: number;
  /** Minimum offer if blocks left the transaction out and endpoints differ about the market (climbing.ts). */
  readonly step?: Fees;
}

/**
 * Proposes the offer of the next attempt; null if the current one is enough. The system raises a proposal to the
 * minimum of a replacement and limits it by the ceiling, so a strategy cannot loop or overspend.
 */
export interface RepricingStrategy {
  readonly name: string;
  propose(view: RepricingView): Fees | null;
}

/** geth's default; others need the same or less. Blob transactions need twice as much: replacement.ts. */
const REPLACEMENT_PERCENT = 10n;
/** A node that called the offer underpriced may need more than a tenth (OpenEthereum: an eighth). */
const REFUSED_PERCENT = 25n;
export const LAST_BLOCKS = 10;

/** Follows the last blocks, and changes only if the offer is below them or was refused. */
export const marketRepricing: RepricingStrategy = {
  name: "market",
  propose(view) {
    const wanted = atMarket(view.standing, view.market);
    if (view.refused) return higher(scale(view.standing, 100n + REFUSED_PERCENT), wanted);
    return isBelowMarket(view.standing, view.market) ? wanted : null;
  },
};

/** Adds a share of the first offer each time, independent of the market. */
export function linearRepricing(stepPercent = 25): RepricingStrategy {
  const step = BigInt(Math.max(1, Math.round(stepPercent)));
  return { name: "linear", propose: ({ first, attempts }) => scale(first, 100n + step * BigInt(attempts)) };
}

/**
 * A user's strategy. If it throws, or returns no valid price, the lane must not stop: the market strategy decides
 * instead, and `failed` gets the reason.
 */
export function guardedRepricing(own: RepricingStrategy, failed: (reason: string) => void): RepricingStrategy {
  return {
    name: own.name,
    propose(view) {
      try {
        const answer: unknown = own.propose(view);
        if (answer === null) return null;
        // Fees without a type have the type of the current offer.
        const proposed = { type: view.standing.type, ...Object(answer) };
        if (isFees(proposed)) return proposed;
        failed("it proposed neither null nor fees in wei (bigint)");
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

/** By their names in the settings. */
export const REPRICING_STRATEGIES: Readonly<Record<"on" | "linear", RepricingStrategy>> = {
  on: marketRepricing,
  linear: linearRepricing(),
};

export type Repricing =
  | { readonly verdict: "keep" }
  /** `reached`: the ceiling limits it, below what the last blocks took. */
  | { readonly verdict: "reprice"; readonly fees: Fees; readonly reached: boolean }
  /** The minimum replacement is above the ceiling. */
  | { readonly verdict: "ceiling"; readonly needed: bigint };

/** Applies the rules to a proposal: enough for a replacement, nothing above the ceiling. */
export function reprice(strategy: RepricingStrategy, view: RepricingView, ceiling: bigint): Repricing {
  const own = strategy.propose(view);
  const proposed = own !== null && view.step !== undefined ? higher(own, view.step) : (own ?? view.step ?? null);
  if (proposed === null) return { verdict: "keep" };
  const least = scale(view.standing, 100n + (view.refused ? REFUSED_PERCENT : REPLACEMENT_PERCENT));
  const wanted = higher(least, sameKind(view.standing, proposed));
  const fees = under(wanted, ceiling);
  // Both prices must rise, or a node calls it underpriced (geth: PriceBump checks tip and cap).
  if (!covers(fees, scale(view.standing, 100n + REPLACEMENT_PERCENT))) {
    return { verdict: "ceiling", needed: feeCap(least) };
  }
  return { verdict: "reprice", fees, reached: feeCap(wanted) > ceiling && isBelowMarket(fees, view.market) };
}

/** Highest value of each field over these attempts. */
export function highestOffer(attempts: readonly Attempt[]): Fees | null {
  return attempts.map(({ fees }) => fees).reduce<Fees | null>((best, fees) => (best ? higher(best, fees) : fees), null);
}

/** True if it offers at least as much in every field. */
export function covers(fees: Fees, demanded: Fees): boolean {
  return feeCap(fees) >= feeCap(demanded) && tipOf(fees) >= tipOf(demanded);
}

/** Below the price of the last blocks: the next ones have no reason to include it. */
export function isBelowMarket(fees: Fees, market: FeeMarket): boolean {
  const baseFee = baseFeeNow(market);
  if (baseFee === undefined) return feeCap(fees) < market.gasPrice;
  const room = feeCap(fees) - baseFee;
  return room < 0n || smaller(tipOf(fees), room) < tipTaken(market);
}

/** Current price of a first attempt: twice the base fee covers six full blocks in a row. */
function atMarket(like: Fees, market: FeeMarket): Fees {
  const baseFee = baseFeeNow(market);
  if (market.offer !== undefined) return sameKind(like, asAdvised(market, market.offer));
  if (like.type !== "eip1559") {
    return { ...like, gasPrice: larger(market.gasPrice, baseFee === undefined ? 0n : baseFee + tipTaken(market)) };
  }
  if (baseFee === undefined) {
    return { type: "eip1559", maxFeePerGas: market.gasPrice, maxPriorityFeePerGas: market.gasPrice };
  }
  const tip = tipTaken(market);
  return { type: "eip1559", maxFeePerGas: baseFee * 2n + tip, maxPriorityFeePerGas: tip };
}

function asAdvised(market: FeeMarket, { maxFeePerGas, maxPriorityFeePerGas = tipTaken(market) }: Offer): Fees {
  return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: smaller(maxPriorityFeePerGas, maxFeePerGas) };
}

/** Tips of the last blocks. */
export function tipTaken({ priorityFees }: FeeMarket): bigint {
  return median(priorityFees.slice(-LAST_BLOCKS));
}

/** Rounded up: a replacement one wei below the minimum is refused. */
function scale(fees: Fees, percent: bigint) {
  return mapFees(fees, (value) => larger((value * percent + 99n) / 100n, value + 1n));
}

/** Higher value of each field, in the envelope of the first. */
export function higher(a: Fees, b: Fees): Fees {
  if (a.type !== "eip1559") return { type: a.type, gasPrice: larger(a.gasPrice, feeCap(b)) };
  const maxFeePerGas = larger(a.maxFeePerGas, feeCap(b));
  return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: larger(a.maxPriorityFeePerGas, tipOf(b)) };
}

/** A replacement keeps the envelope: an access list or a chain's rules may depend on it. */
function sameKind(like: Fees, fees: Fees): Fees {
  if (like.type !== "eip1559") return { type: like.type, gasPrice: feeCap(fees) };
  return { type: "eip1559", maxFeePerGas: feeCap(fees), maxPriorityFeePerGas: tipOf(fees) };
}

export function tipOf(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxPriorityFeePerGas : fees.gasPrice;
}
