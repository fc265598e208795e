/** Fees of a transaction, in wei. */
export type Fees =
  | { readonly type: "legacy" | "eip2930"; readonly gasPrice: bigint }
  | { readonly type: "eip1559"; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint };

/**
 * Fee data of a chain, as endpoints report it. `baseFees`: base fees of the last blocks, oldest first; empty on chains
 * without EIP-1559.
 */
export interface FeeMarket {
  readonly baseFees: readonly bigint[];
  /** Tips at a low percentile of each block that had transactions. */
  readonly priorityFees: readonly bigint[];
  /** `eth_gasPrice`: the price of legacy transactions. */
  readonly gasPrice: bigint;
  /**
   * Fees that a gas oracle recommends, or an operator's fixed price; absent if there is none, or the oracle does not
   * respond.
   */
  readonly offer?: Offer;
  /**
   * True if two endpoints have the block header from which the base fee was read. Absent: only one endpoint reported
   * the fees, or the two share no header.
   */
  readonly agreed?: true;
  /**
   * The higher fees, if two endpoints report different ones. They are offered only after several blocks did not include
   * a transaction at the lower fees (climbing.ts).
   */
  readonly dearer?: Asked;
  /** Values about which the endpoints contradict each other, each with the name of its endpoint. */
  readonly disputed?: readonly string[];
}

/** Price per gas according to the chain. `baseFee` is zero on chains without EIP-1559. */
export interface Asked {
  readonly baseFee: bigint;
  readonly tip: bigint;
  readonly gasPrice: bigint;
}

/** Fees recommended by a source other than the chain, such as a gas oracle. */
export interface Offer {
  readonly maxFeePerGas: bigint;
  /** Recommended tip. Absent: use the tip that the chain's recent blocks show. */
  readonly maxPriorityFeePerGas?: bigint;
  /**
   * True for an operator's fixed price, which is limited only by the ceilings. Other recommendations are also limited
   * by the prices of recent blocks.
   */
  readonly isFixed: boolean;
}

export interface FeeWishes {
  readonly type?: Fees["type"];
  readonly gasPrice?: bigint;
  readonly maxFeePerGas?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
}

/** One gwei: the tip that is used if recent blocks show none. */
const FALLBACK_TIP = 1_000_000_000n;
const SANITY_FACTOR = 10n;
/** Number of blocks over which the median base fee is computed. */
export const SANITY_BLOCKS = 100;

export function median(values: readonly bigint[]): bigint {
  if (values.length === 0) return 0n;
  const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor(sorted.length / 2)] as bigint;
}

/**
 * Highest price that a single response of an endpoint can cause: ten times the median base fee, plus one gwei. Null if
 * base fees are unknown or zero: then only the ceilings apply (ceilings.ts).
 */
export function sanityLimit(baseFees: readonly bigint[]): bigint | null {
  const usual = median(baseFees);
  return usual === 0n ? null : usual * SANITY_FACTOR + FALLBACK_TIP;
}

/**
 * First price of a transaction: the caller's price, otherwise one derived from the chain's fees, under the ceiling.
 * Twice the base fee covers six full blocks in a row (EIP-1559: at most +12.5 % a block).
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
 * Current base fee: the higher of the newest block's base fee and the forecast for the next block. The forecast may be
 * too low on a chain whose base fee has a minimum or is set by an operator. Undefined on chains without base fees.
 */
export function baseFeeNow({ baseFees }: FeeMarket): bigint | undefined {
  const [a, b = a] = baseFees.slice(-2);
  return a === undefined || b === undefined ? undefined : larger(a, b);
}

/** Used instead of the chain's fee data if the caller named every fee: none of its values is read. */
export const NO_MARKET: FeeMarket = { baseFees: [], priorityFees: [], gasPrice: 0n };

/**
 * Chooses the transaction type for these fees. A legacy transaction cannot have an access list, so it becomes EIP-2930,
 * at the same price.
 */
export function envelopeFor(fees: Fees, accessList: readonly unknown[]): Fees {
  return fees.type === "legacy" && accessList.length > 0 ? { ...fees, type: "eip2930" } : fees;
}

/** Highest cost per gas: the amount that a balance must cover. */
export function feeCap(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxFeePerGas : fees.gasPrice;
}

export function tipOf(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxPriorityFeePerGas : fees.gasPrice;
}

/**
 * Makes fees at these prices, of the same transaction type as the given fees. The type is kept because an access list
 * or the chain's rules may require it. A type without dynamic fees has one price, the cap.
 */
export function feesLike({ type }: Fees, maxFeePerGas: bigint, maxPriorityFeePerGas: bigint): Fees {
  return type === "eip1559" ? { type, maxFeePerGas, maxPriorityFeePerGas } : { type, gasPrice: maxFeePerGas };
}

/** Fees of the same type with each price changed by `change`. */
export function mapFees(fees: Fees, change: (value: bigint) => bigint): Fees {
  return feesLike(fees, change(feeCap(fees)), change(tipOf(fees)));
}

/** Fees of the same type with no price above `most`. */
export function under(fees: Fees, most: bigint): Fees {
  const tip = tipOf(fees);
  const cap = smaller(larger(feeCap(fees), tip), most);
  return feesLike(fees, cap, smaller(tip, cap));
}

/** True if the caller named every fee, so that the chain's fees need not be read. */
export function isFullyPriced(wishes: FeeWishes): boolean {
  return (
    wishes.gasPrice !== undefined || (wishes.maxFeePerGas !== undefined && wishes.maxPriorityFeePerGas !== undefined)
  );
}

function wantsDynamicFees(wishes: FeeWishes) {
  return wishes.type === "eip1559" || wishes.maxFeePerGas !== undefined || wishes.maxPriorityFeePerGas !== undefined;
}

const digests = new WeakMap<FeeMarket, { readonly tip: bigint; readonly sanityLimit: bigint | null }>();

/**
 * Medians of a chain's recent fees. They are computed once per block, because all transactions until the next block are
 * priced with the same data.
 */
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

/** Tip that is offered if the caller names none. */
export function tipFor(market: FeeMarket): bigint {
  return digest(market).tip;
}

/**
 * Limits a price that comes from a single response of a chain or an oracle, because the response may be false. An
 * operator's fixed price is not limited.
 */
function sane(market: FeeMarket, price: bigint, ceiling: bigint | null) {
  return market.offer?.isFixed === true ? price : capped(price, digest(market).sanityLimit, ceiling);
}

/** Lowers the value to the smallest limit that is known. */
export function capped(value: bigint, ...limits: readonly (bigint | null)[]) {
  return limits.reduce<bigint>((least, limit) => (limit === null ? least : smaller(least, limit)), value);
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/**
 * True if the fee cap is below half of the base fee: the transaction would need six empty blocks in a row to be mined.
 */
export function isHopelessCap(cap: bigint, baseFee: bigint): boolean {
  return cap * 2n < baseFee;
}
