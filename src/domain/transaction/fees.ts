/** Fees of a transaction, in wei. */
export type Fees =
  | { readonly type: "legacy" | "eip2930"; readonly gasPrice: bigint }
  | { readonly type: "eip1559"; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint };

/** Base fees of the last blocks, oldest first. Empty on chains without EIP-1559. */
export interface FeeMarket {
  readonly baseFees: readonly bigint[];
  /** Tips at a low percentile of each block that had transactions. */
  readonly priorityFees: readonly bigint[];
  /** `eth_gasPrice`: the price of legacy transactions. */
  readonly gasPrice: bigint;
  /** Advice of a gas oracle; absent if there is none, or it does not answer. */
  readonly offer?: Offer;
  /** Two endpoints have the header of the base fee. Absent: the market is the claim of one endpoint. */
  readonly agreed?: true;
  /** The higher of two endpoints' markets, offered only after blocks left the lower one out (climbing.ts). */
  readonly dearer?: Asked;
  /** Contradictions between endpoints, each with its endpoint. */
  readonly disputed?: readonly string[];
}

/** Price per gas of a market. `baseFee` is zero on chains without EIP-1559. */
export interface Asked {
  readonly baseFee: bigint;
  readonly tip: bigint;
  readonly gasPrice: bigint;
}

/** Advised fees, from a source other than the chain. */
export interface Offer {
  readonly maxFeePerGas: bigint;
  /** Absent: the market's tip. */
  readonly maxPriorityFeePerGas?: bigint;
  /** An operator's fixed price, limited only by the ceilings. Other advice is also limited by recent blocks. */
  readonly isFixed: boolean;
}

export interface FeeWishes {
  readonly type?: Fees["type"];
  readonly gasPrice?: bigint;
  readonly maxFeePerGas?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
}

/** One gwei: the tip if the market shows none. */
const FALLBACK_TIP = 1_000_000_000n;
const SANITY_FACTOR = 10n;
/** Number of blocks in the median base fee. */
export const SANITY_BLOCKS = 100;

export function median(values: readonly bigint[]): bigint {
  if (values.length === 0) return 0n;
  const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor(sorted.length / 2)] as bigint;
}

/**
 * Limit on one market answer: ten times the median base fee. Null if base fees are unknown or zero: then only the
 * ceilings apply (ceilings.ts).
 */
export function sanityLimit(baseFees: readonly bigint[]): bigint | null {
  const usual = median(baseFees);
  return usual === 0n ? null : usual * SANITY_FACTOR + FALLBACK_TIP;
}

/**
 * First price of a transaction: the caller's, else the market's, under the ceiling. Twice the base fee covers six full
 * blocks in a row (EIP-1559: at most +12.5 % a block).
 */
export function priceFirstAttempt(market: FeeMarket, wishes: FeeWishes, ceiling: bigint | null): Fees {
  const legacy = wishes.gasPrice !== undefined || wishes.type === "legacy" || wishes.type === "eip2930";
  if (legacy || (market.baseFees.length === 0 && !wantsDynamicFees(wishes))) {
    const type = wishes.type === "eip2930" ? "eip2930" : "legacy";
    const gasPrice = wishes.gasPrice ?? sane(market, market.offer?.maxFeePerGas ?? market.gasPrice, ceiling);
    return { type, gasPrice };
  }
  const baseFee = market.baseFees.at(-1) ?? 0n;
  const usualTip = market.offer?.maxPriorityFeePerGas ?? tipFor(market);
  const tip = wishes.maxPriorityFeePerGas ?? capped(usualTip, wishes.maxFeePerGas ?? null);
  const maxFeePerGas = wishes.maxFeePerGas ?? sane(market, market.offer?.maxFeePerGas ?? baseFee * 2n + tip, ceiling);
  const maxPriorityFeePerGas = wishes.maxPriorityFeePerGas ?? smaller(tip, maxFeePerGas);
  return { type: "eip1559", maxFeePerGas: larger(maxFeePerGas, maxPriorityFeePerGas), maxPriorityFeePerGas };
}

/**
 * Current base fee: the higher of the newest block and the forecast for the next. A chain with a minimum base fee, or
 * one that an operator sets, may not let it fall. Undefined on chains without base fees.
 */
export function baseFeeNow({ baseFees }: FeeMarket): bigint | undefined {
  const [a, b = a] = baseFees.slice(-2);
  return a === undefined || b === undefined ? undefined : larger(a, b);
}

/** Placeholder for the market if the caller named every fee: none of its values is read. */
export const NO_MARKET: FeeMarket = { baseFees: [], priorityFees: [], gasPrice: 0n };

/** A legacy transaction has no access list. EIP-2930 has one, and the same price. */
export function envelopeFor(fees: Fees, accessList: readonly unknown[]): Fees {
  return fees.type === "legacy" && accessList.length > 0 ? { ...fees, type: "eip2930" } : fees;
}

/** Highest cost per gas: what a balance must cover. */
export function feeCap(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxFeePerGas : fees.gasPrice;
}

export function tipOf(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxPriorityFeePerGas : fees.gasPrice;
}

/**
 * These prices in the envelope of `like`: an access list or a chain's rules may depend on it. Without dynamic fees
 * there is one price, the cap.
 */
export function feesLike({ type }: Fees, maxFeePerGas: bigint, maxPriorityFeePerGas: bigint): Fees {
  return type === "eip1559" ? { type, maxFeePerGas, maxPriorityFeePerGas } : { type, gasPrice: maxFeePerGas };
}

/** The same kind of offer with every price changed alike. */
export function mapFees(fees: Fees, change: (value: bigint) => bigint): Fees {
  return feesLike(fees, change(feeCap(fees)), change(tipOf(fees)));
}

/** The same offer with no price above `most`. */
export function under(fees: Fees, most: bigint): Fees {
  const tip = tipOf(fees);
  const cap = smaller(larger(feeCap(fees), tip), most);
  return feesLike(fees, cap, smaller(tip, cap));
}

/** True if the caller named every fee, so that no market is needed. */
export function isFullyPriced(wishes: FeeWishes): boolean {
  return (
    wishes.gasPrice !== undefined || (wishes.maxFeePerGas !== undefined && wishes.maxPriorityFeePerGas !== undefined)
  );
}

function wantsDynamicFees(wishes: FeeWishes) {
  return wishes.type === "eip1559" || wishes.maxFeePerGas !== undefined || wishes.maxPriorityFeePerGas !== undefined;
}

const digests = new WeakMap<FeeMarket, { readonly tip: bigint; readonly sanityLimit: bigint | null }>();

/** The medians are computed once per market: it prices everything until the next block. */
function digest(market: FeeMarket) {
  const known = digests.get(market);
  if (known !== undefined) return known;
  const fresh = {
    // A negative tip is malformed and cannot be encoded.
    tip: market.priorityFees.length === 0 ? FALLBACK_TIP : larger(median(market.priorityFees), 0n),
    sanityLimit: sanityLimit(market.baseFees),
  };
  digests.set(market, fresh);
  return fresh;
}

/** Default tip. */
export function tipFor(market: FeeMarket): bigint {
  return digest(market).tip;
}

/** Limits one answer, which may be false, of a chain or an oracle. An operator's fixed price is not limited. */
function sane(market: FeeMarket, price: bigint, ceiling: bigint | null) {
  return market.offer?.isFixed === true ? price : capped(price, digest(market).sanityLimit, ceiling);
}

/** Under every limit that is known. */
export function capped(value: bigint, ...limits: readonly (bigint | null)[]) {
  return limits.reduce<bigint>((least, limit) => (limit === null ? least : smaller(least, limit)), value);
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** Below half of the base fee: it would need six empty blocks in a row to be mined. */
export function isHopelessCap(cap: bigint, baseFee: bigint): boolean {
  return cap * 2n < baseFee;
}
