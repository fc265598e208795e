/** How a transaction pays. Wei throughout. */
export type Fees =
  | { readonly type: "legacy" | "eip2930"; readonly gasPrice: bigint }
  | { readonly type: "eip1559"; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint };

/** What the last blocks took, oldest first. `baseFees` is empty on chains without EIP-1559. */
export interface FeeMarket {
  readonly baseFees: readonly bigint[];
  /** Tips paid at a low percentile of each block, for blocks that held transactions. */
  readonly priorityFees: readonly bigint[];
  /** `eth_gasPrice`; what legacy transactions pay. */
  readonly gasPrice: bigint;
  /** What a gas oracle would offer instead; absent: there is none, or it is silent. */
  readonly offer?: Offer;
  /** Two endpoints have the header that the base fee is of. Absent: the market is one endpoint's word. */
  readonly agreed?: true;
  /** The dearer of two endpoints' markets: offered only after blocks passed the lower one over (climbing.ts). */
  readonly dearer?: Asked;
  /** Contradictions between endpoints, each with the endpoint that gave the answer. */
  readonly disputed?: readonly string[];
}

/** What a market asks for a unit of gas. `baseFee` is zero on chains without EIP-1559. */
export interface Asked {
  readonly baseFee: bigint;
  readonly tip: bigint;
  readonly gasPrice: bigint;
}

/** What somebody else than the chain advises. */
export interface Offer {
  readonly maxFeePerGas: bigint;
  /** Absent: the tip that the market takes. */
  readonly maxPriorityFeePerGas?: bigint;
  /** An operator's own figure, which the ceilings alone bound. Else an answer like any other: bounded by what blocks took, too. */
  readonly isFixed: boolean;
}

export interface FeeWishes {
  readonly type?: Fees["type"];
  readonly gasPrice?: bigint;
  readonly maxFeePerGas?: bigint;
  readonly maxPriorityFeePerGas?: bigint;
}

const GWEI = 1_000_000_000n;
const FALLBACK_TIP = GWEI;
const SANITY_FACTOR = 10n;
/** Of so many blocks the median base fee is taken. */
export const SANITY_BLOCKS = 100;

export function median(values: readonly bigint[]): bigint {
  if (values.length === 0) return 0n;
  const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor(sorted.length / 2)] as bigint;
}

/**
 * What one answer about the market may say: at most ten times the median base fee seen. Null where base fees are unknown
 * or zero: there is nothing to compare with, and the ceilings alone bind (ceilings.ts).
 */
export function sanityLimit(baseFees: readonly bigint[]): bigint | null {
  const usual = median(baseFees);
  return usual === 0n ? null : usual * SANITY_FACTOR + FALLBACK_TIP;
}

/**
 * The first price of a transaction: what the caller asked for, else the market's, under the ceiling.
 * Twice the base fee rides out six full blocks in a row (EIP-1559: at most +12.5 % a block).
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
 * What gas costs now: the dearer of the newest block and of the next, which is only foretold: a chain with a floor under its
 * base fee, or an operator that sets it, may not let it fall. Undefined on chains without base fees.
 */
export function baseFeeNow({ baseFees }: FeeMarket): bigint | undefined {
  const [a, b = a] = baseFees.slice(-2);
  return a === undefined || b === undefined ? undefined : larger(a, b);
}

/** Stands for the market where the caller named every fee: none of its figures is read. */
export const NO_MARKET: FeeMarket = { baseFees: [], priorityFees: [], gasPrice: 0n };

/** A legacy envelope has no place for an access list. The one of EIP-2930 has, and pays the same. */
export function envelopeFor(fees: Fees, accessList: readonly unknown[]): Fees {
  return fees.type === "legacy" && accessList.length > 0 ? { ...fees, type: "eip2930" } : fees;
}

/** The most one unit of gas can cost: what a balance must cover. */
export function feeCap(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxFeePerGas : fees.gasPrice;
}

/** The same kind of offer, every field of it changed alike. */
export function mapFees(fees: Fees, change: (value: bigint) => bigint): Fees {
  if (fees.type !== "eip1559") return { type: fees.type, gasPrice: change(fees.gasPrice) };
  const { maxFeePerGas, maxPriorityFeePerGas } = fees;
  return { type: "eip1559", maxFeePerGas: change(maxFeePerGas), maxPriorityFeePerGas: change(maxPriorityFeePerGas) };
}

/** The same offer, no field of it above `most`. */
export function under(fees: Fees, most: bigint): Fees {
  if (fees.type !== "eip1559") return { type: fees.type, gasPrice: smaller(fees.gasPrice, most) };
  const maxFeePerGas = smaller(larger(fees.maxFeePerGas, fees.maxPriorityFeePerGas), most);
  return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: smaller(fees.maxPriorityFeePerGas, maxFeePerGas) };
}

/** True where the caller brought every fee field, so that no market needs to be asked. */
export function isFullyPriced(wishes: FeeWishes): boolean {
  return (
    wishes.gasPrice !== undefined || (wishes.maxFeePerGas !== undefined && wishes.maxPriorityFeePerGas !== undefined)
  );
}

function wantsDynamicFees(wishes: FeeWishes): boolean {
  return wishes.type === "eip1559" || wishes.maxFeePerGas !== undefined || wishes.maxPriorityFeePerGas !== undefined;
}

interface Digest {
  readonly tip: bigint;
  readonly sanityLimit: bigint | null;
}

const digests = new WeakMap<FeeMarket, Digest>();

/** One market prices everything that is signed until the next block: its medians are taken once. */
function digest(market: FeeMarket): Digest {
  const known = digests.get(market);
  if (known !== undefined) return known;
  const fresh = {
    // A negative tip is a malformed answer, and cannot be encoded.
    tip: market.priorityFees.length === 0 ? FALLBACK_TIP : larger(median(market.priorityFees), 0n),
    sanityLimit: sanityLimit(market.baseFees),
  };
  digests.set(market, fresh);
  return fresh;
}

/** What a payload without a wish tips. */
export function tipFor(market: FeeMarket): bigint {
  return digest(market).tip;
}

/** One answer may be false, of a chain or of an oracle. What the operator fixed is not an answer. */
function sane(market: FeeMarket, price: bigint, ceiling: bigint | null): bigint {
  return market.offer?.isFixed === true ? price : capped(price, digest(market).sanityLimit, ceiling);
}

function capped(value: bigint, ...limits: readonly (bigint | null)[]): bigint {
  return limits.reduce<bigint>((least, limit) => (limit === null ? least : smaller(least, limit)), value);
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** Below half of the base fee: six empty blocks in a row would have to come before it could be mined. */
export function isHopelessCap(cap: bigint, baseFee: bigint): boolean {
  return cap * 2n < baseFee;
}
