/**
 * Combines the fee markets of two endpoints. Either may be false, so no value of one alone raises a price: base fees
 * come from a header that both have, and of tips and gas prices the lower ones are used. The higher market is returned,
 * too. If the lower one is false, blocks skip the transaction, and its price rises in steps towards the higher
 * (climbing.ts).
 */
import { type Asked, capped, type FeeMarket, larger, sanityLimit, smaller, tipFor } from "../transaction/fees.ts";
import { LAST_BLOCKS, tipTaken } from "./repricing.ts";

/** Fee market of one endpoint, with the base fee of its newest block (null if it has none). */
export interface MarketWord {
  readonly label: string;
  readonly market: FeeMarket;
  readonly baseFee: bigint | null;
}

/** Base fee of a header that both endpoints have; null if the chain has no base fees. "none": they share no header. */
export type SharedBaseFee = { readonly baseFee: bigint | null } | "none";

/** Prices of two endpoints that differ by more than this factor cannot both be true. */
const CONTRADICTION_FACTOR = 4n;

export function lowerOf(a: MarketWord, b: MarketWord, shared: SharedBaseFee, troubles: readonly string[]): FeeMarket {
  const bases = shared === "none" ? [a.baseFee, b.baseFee] : [shared.baseFee, shared.baseFee];
  const [one = null, other = null] = bases;
  // If one endpoint reports no base fee, use a plain gas price: chains with and without base fees accept it.
  const baseFee = one === null || other === null ? null : smaller(one, other);
  const gasPrice = smaller(a.market.gasPrice, b.market.gasPrice);
  const priorityFees = baseFee === null ? [] : lowerTips(a.market, b.market);
  const market: FeeMarket = { baseFees: baseFee === null ? [] : [baseFee], priorityFees, gasPrice };
  const most = shared === "none" ? null : sanityLimit(market.baseFees);
  const dearer: Asked = {
    baseFee: larger(one ?? 0n, other ?? 0n),
    tip: capped(larger(tipFor(a.market), tipFor(b.market)), most),
    gasPrice: capped(larger(a.market.gasPrice, b.market.gasPrice), most),
  };
  const disputed = [...troubles, ...contradictions(a, b, baseFee)];
  return {
    ...market,
    ...(shared === "none" ? {} : { agreed: true }),
    ...(isDearer(dearer, market) ? { dearer } : {}),
    ...(disputed.length > 0 ? { disputed } : {}),
  };
}

/**
 * The tips reported by the endpoint with the lower median tip. Tips of the newest blocks, the only ones that repricing
 * uses, are also limited by the other endpoint's tip.
 */
function lowerTips(a: FeeMarket, b: FeeMarket): readonly bigint[] {
  const [low, high] = tipFor(a) <= tipFor(b) ? [a, b] : [b, a];
  const most = tipTaken(high);
  const tips = low.priorityFees;
  return tips.map((tip, index) => (index < tips.length - LAST_BLOCKS ? tip : smaller(tip, most)));
}

/** True if the higher market exceeds the lower by more than an eighth, the most that one block can change. */
function isDearer(dearer: Asked, lower: FeeMarket) {
  const isMore = (high: bigint, low: bigint) => high * 8n > low * 9n;
  const price = (lower.baseFees[0] ?? 0n) + tipFor(lower);
  return (
    isMore(dearer.gasPrice, lower.gasPrice) || (lower.baseFees.length > 0 && isMore(dearer.baseFee + dearer.tip, price))
  );
}

/**
 * Descriptions of the two markets' prices if they cannot both be true; empty otherwise. Tips count only if both
 * endpoints report some: a lagging node may have none yet.
 */
function contradictions(a: MarketWord, b: MarketWord, baseFee: bigint | null): readonly string[] {
  const haveTips = [a, b].every(({ market }) => market.priorityFees.length > 0);
  const priceOf = ({ market, baseFee: own }: MarketWord) =>
    baseFee === null ? market.gasPrice : (own ?? 0n) + (haveTips ? tipFor(market) : 0n);
  const prices = [priceOf(a), priceOf(b)] as const;
  if (larger(...prices) <= smaller(...prices) * CONTRADICTION_FACTOR) return [];
  return [a, b].map((word) => `${word.label} asks ${priceOf(word)} wei for a unit of gas`);
}
