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
} from "./fees.ts";
import type { Attempt } from "./transaction.ts";

/** What a strategy knows of one transaction that was sent and is not mined. Wei throughout. */
export interface RepricingView {
  /** What the first attempt offered. */
  readonly first: Fees;
  /** What a new attempt is measured against: the highest that a node took or called underpriced. */
  readonly standing: Fees;
  /** A node said that `standing` is not enough. */
  readonly refused: boolean;
  /** What the last blocks took. */
  readonly market: FeeMarket;
  /** How many payloads were signed for it so far. */
  readonly attempts: number;
  /** Blocks passed over what stands, and endpoints differ about the market: at least this is offered now (climbing.ts). */
  readonly step?: Fees;
}

/**
 * Decides what the next attempt at a nonce should offer; null: what stands is enough. The system raises a proposal to
 * what nodes demand of a replacement and keeps it under the ceiling, so a strategy cannot loop or overspend.
 */
export interface RepricingStrategy {
  readonly name: string;
  propose(view: RepricingView): Fees | null;
}

/** geth's default; others ask for the same or less. A blob transaction needs twice as much: replacement.ts. */
const REPLACEMENT_PERCENT = 10n;
/** A node that called the standing offer underpriced may ask for more than the usual tenth (OpenEthereum: an eighth). */
const REFUSED_PERCENT = 25n;
export const LAST_BLOCKS = 10;

/** Follows what the last blocks took, and moves only where the standing offer is below it or was refused. */
export const marketRepricing: RepricingStrategy = {
  name: "market",
  propose(view) {
    const wanted = atMarket(view.standing, view.market);
    if (view.refused) return higher(scale(view.standing, 100n + REFUSED_PERCENT), wanted);
    return isBelowMarket(view.standing, view.market) ? wanted : null;
  },
};

/** Adds a share of the first offer each time, whatever the market does. */
export function linearRepricing(stepPercent = 25): RepricingStrategy {
  const step = BigInt(Math.max(1, Math.round(stepPercent)));
  return { name: "linear", propose: ({ first, attempts }) => scale(first, 100n + step * BigInt(attempts)) };
}

/**
 * A strategy that somebody else wrote. One that throws, or answers with what is no price, must not stop the lane: the
 * market decides in its place, and `failed` is told why.
 */
export function guardedRepricing(own: RepricingStrategy, failed: (reason: string) => void): RepricingStrategy {
  return {
    name: own.name,
    propose(view) {
      try {
        const answer: unknown = own.propose(view);
        if (answer === null) return null;
        // Whoever names fees alone means the kind that stands.
        const proposed = { type: view.standing.type, ...Object(answer) };
        if (isFees(proposed)) return proposed;
        failed("it proposed neither null nor fees in wei (bigint)");
      } catch (error) {
        failed(error instanceof Error ? error.message : String(error));
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

/** By what the settings call them. */
export const REPRICING_STRATEGIES: Readonly<Record<"on" | "linear", RepricingStrategy>> = {
  on: marketRepricing,
  linear: linearRepricing(),
};

export type Repricing =
  | { readonly verdict: "keep" }
  /** `reached`: it is all that the ceiling allows, and still less than the last blocks took. */
  | { readonly verdict: "reprice"; readonly fees: Fees; readonly reached: boolean }
  /** The least that nodes would take as a replacement is above the ceiling. */
  | { readonly verdict: "ceiling"; readonly needed: bigint };

/** A strategy's proposal within the rules: enough to replace what stands, nothing above the ceiling. */
export function reprice(strategy: RepricingStrategy, view: RepricingView, ceiling: bigint): Repricing {
  const own = strategy.propose(view);
  const proposed = own !== null && view.step !== undefined ? higher(own, view.step) : (own ?? view.step ?? null);
  if (proposed === null) return { verdict: "keep" };
  const least = scale(view.standing, 100n + (view.refused ? REFUSED_PERCENT : REPLACEMENT_PERCENT));
  const wanted = higher(least, sameKind(view.standing, proposed));
  const fees = under(wanted, ceiling);
  // Both fields, or a node calls it underpriced (geth: PriceBump; the tip counts as much as the cap).
  if (!covers(fees, scale(view.standing, 100n + REPLACEMENT_PERCENT))) {
    return { verdict: "ceiling", needed: feeCap(least) };
  }
  return { verdict: "reprice", fees, reached: feeCap(wanted) > ceiling && isBelowMarket(fees, view.market) };
}

/** Field by field the highest of what these attempts offer. */
export function highestOffer(attempts: readonly Attempt[]): Fees | null {
  return attempts.map(({ fees }) => fees).reduce<Fees | null>((best, fees) => (best ? higher(best, fees) : fees), null);
}

/** Offers at least as much in every field. */
export function covers(fees: Fees, demanded: Fees): boolean {
  return feeCap(fees) >= feeCap(demanded) && tipOf(fees) >= tipOf(demanded);
}

/** Below what the last blocks took: the next ones have no reason to take it. */
export function isBelowMarket(fees: Fees, market: FeeMarket): boolean {
  const baseFee = baseFeeNow(market);
  if (baseFee === undefined) return feeCap(fees) < market.gasPrice;
  const room = feeCap(fees) - baseFee;
  return room < 0n || smaller(tipOf(fees), room) < tipTaken(market);
}

/** What would be offered for a first attempt now: twice the base fee rides out six full blocks in a row. */
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

/** What the last blocks took above their base fee. */
export function tipTaken({ priorityFees }: FeeMarket): bigint {
  return median(priorityFees.slice(-LAST_BLOCKS));
}

/** Rounded up: a replacement that misses the minimum by one wei is refused. */
function scale(fees: Fees, percent: bigint): Fees {
  return mapFees(fees, (value) => larger((value * percent + 99n) / 100n, value + 1n));
}

/** Field by field the higher of two, in the envelope of the first. */
export function higher(a: Fees, b: Fees): Fees {
  if (a.type !== "eip1559") return { type: a.type, gasPrice: larger(a.gasPrice, feeCap(b)) };
  const maxFeePerGas = larger(a.maxFeePerGas, feeCap(b));
  return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: larger(a.maxPriorityFeePerGas, tipOf(b)) };
}

/** A replacement stays in the envelope of what it replaces: an access list or a chain's rules may depend on it. */
function sameKind(like: Fees, fees: Fees): Fees {
  if (like.type !== "eip1559") return { type: like.type, gasPrice: feeCap(fees) };
  return { type: "eip1559", maxFeePerGas: feeCap(fees), maxPriorityFeePerGas: tipOf(fees) };
}

export function tipOf(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxPriorityFeePerGas : fees.gasPrice;
}
