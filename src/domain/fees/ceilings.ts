/**
 * Limits on the price of every transaction, whether the price comes from the market, a caller, an operator, the hook,
 * or bytes signed elsewhere. An endpoint with false prices, or a caller's typing error, must not empty an account. The
 * base fee is no substitute for such a limit: some chains have none, and an endpoint may falsify it.
 */

import { FencepostError } from "../errors.ts";
import { type Fees, type FeeWishes, feeCap, larger, smaller, under } from "../transaction/fees.ts";
import type { UnsignedTransaction } from "../transaction/transaction.ts";
import { listedCeilings, UNKNOWN_CHAIN } from "./default-ceilings.ts";

/** Environment variable of a ceiling; error messages name the one to raise. */
export type CeilingVariable = "FENCEPOST_MAX_FEE_GWEI" | "FENCEPOST_MAX_GAS_COST_WEI" | "FENCEPOST_MAX_COST_WEI";

/** Configured ceilings; null for those that are not configured. */
export interface CeilingSettings {
  readonly maxFeeWei: bigint | null;
  readonly maxGasCostWei: bigint | null;
  readonly maxCostWei: bigint | null;
}

/** Ceilings of one chain, in wei. */
export interface Ceilings {
  /** Limit on the fee cap per unit of gas. */
  readonly feePerGas: bigint;
  /**
   * True if `feePerGas` is configured: then only the ceilings limit repricing. Otherwise repricing also stops at a
   * multiple of the first price.
   */
  readonly isFeeSet: boolean;
  /** Limit on gas × fee cap, blobs included. */
  readonly gasCost: bigint;
  /** Limit on value + gas × fee cap; null if the value is not limited here. */
  readonly cost: bigint | null;
}

/** Everything besides the gas price that decides a transaction's cost. */
export interface Content {
  readonly gas: bigint;
  readonly value: bigint;
  /** Maximum cost of the transaction's blobs (EIP-4844). */
  readonly blobCost?: bigint;
}

/** Highest allowed price per gas, and the ceiling that sets it. Negative if value and blobs alone exceed a ceiling. */
export interface FeeLimit {
  readonly most: bigint;
  readonly variable: CeilingVariable;
  /**
   * Set if the limit is this multiple of the first price, lower than every ceiling. Only if `FENCEPOST_MAX_FEE_GWEI` is
   * not configured.
   */
  readonly timesFirst?: bigint;
}

const GWEI = 1_000_000_000n;
const MILLI_TOKEN = 10n ** 15n;
const REPRICING_FACTOR = 5n;

export function ceilingsOf(chainId: number, settings: CeilingSettings): Ceilings {
  const { feeGwei, gasCostMilli } = listedCeilings(chainId) ?? UNKNOWN_CHAIN;
  return {
    feePerGas: settings.maxFeeWei ?? feeGwei * GWEI,
    isFeeSet: settings.maxFeeWei !== null,
    gasCost: settings.maxGasCostWei ?? gasCostMilli * MILLI_TOKEN,
    cost: settings.maxCostWei,
  };
}

/**
 * Maximum cost that the ceilings allow for a transaction with this value, whatever its price. If `gas` is absent, for
 * any gas limit.
 */
export function worstCost(
  { feePerGas, gasCost, cost }: Ceilings,
  { value, gas }: { value: bigint; gas?: bigint },
): bigint {
  const byPrice = gas === undefined ? gasCost : gas * feePerGas;
  const most = value + smaller(byPrice, gasCost);
  return cost !== null && cost < most && cost >= value ? cost : most;
}

export function feeLimit({ feePerGas, gasCost, cost }: Ceilings, content: Content): FeeLimit {
  const { gas, value, blobCost = 0n } = content;
  let limit: FeeLimit = { most: feePerGas, variable: "FENCEPOST_MAX_FEE_GWEI" };
  const byGasCost = shared(gasCost - blobCost, gas);
  if (byGasCost < limit.most) limit = { most: byGasCost, variable: "FENCEPOST_MAX_GAS_COST_WEI" };
  const byCost = cost === null ? null : shared(cost - value - blobCost, gas);
  if (byCost !== null && byCost < limit.most) limit = { most: byCost, variable: "FENCEPOST_MAX_COST_WEI" };
  return limit;
}

/**
 * Limit for an automatic replacement: the ceilings and, if `FENCEPOST_MAX_FEE_GWEI` is not configured, five times the
 * first price. If the first price was almost zero, five times may not suffice: the transaction then waits for an
 * operator's action (reprice.ts).
 */
export function repricingLimit(ceilings: Ceilings, content: Content, first: Fees): FeeLimit {
  const limit = feeLimit(ceilings, content);
  const grown = feeCap(first) * REPRICING_FACTOR;
  if (ceilings.isFeeSet || grown >= limit.most) return limit;
  return { most: grown, variable: "FENCEPOST_MAX_FEE_GWEI", timesFirst: REPRICING_FACTOR };
}

export interface Priced {
  readonly fees: Fees;
  /** The limit that lowered the wanted price; null if the price was within it. */
  readonly reached: FeeLimit | null;
}

/** The wanted price, lowered to the ceilings if it exceeds them. */
export function priceUnder(ceilings: Ceilings, content: Content, wanted: Fees): Priced {
  const limit = feeLimit(ceilings, content);
  if (feeCap(wanted) <= limit.most) return { fees: wanted, reached: null };
  return { fees: under(wanted, larger(limit.most, 0n)), reached: limit };
}

/**
 * Refuses fees that a caller or operator named if they are above a ceiling. They are not lowered silently, because that
 * would be a guess.
 */
export function refuseOverCeiling(ceilings: Ceilings, content: Content, wishes: FeeWishes): void {
  const { gasPrice = 0n, maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = wishes;
  const cap = [gasPrice, maxFeePerGas, maxPriorityFeePerGas].reduce(larger);
  const limit = feeLimit(ceilings, content);
  if (cap > limit.most) throw overCeiling(ceilings, content, cap, limit);
}

declare const within: unique symbol;

/** A transaction within the ceilings of its chain: only this type is signed, or stored to be sent. */
export type Bounded = UnsignedTransaction & { readonly [within]: true };

/**
 * The check that every transaction passes before it becomes an attempt. Throws SUBMISSION_REJECTED with the reason
 * `FEE_OVER_CEILING`.
 */
export function bounded(ceilings: Ceilings, unsigned: UnsignedTransaction, blobCost = 0n): Bounded {
  const { gas, value, fees } = unsigned;
  refuseOverCeiling(ceilings, { gas, value, blobCost }, fees);
  return unsigned as Bounded;
}

export function overCeiling(ceilings: Ceilings, content: Content, cap: bigint, limit: FeeLimit): FencepostError {
  const { gas, value, blobCost = 0n } = content;
  const blobs = blobCost === 0n ? "" : ` + blobs ${blobCost}`;
  const gasWords = `gas ${gas} x fee cap ${cap}${blobs}`;
  const gasCost = gas * cap + blobCost;
  const said: Readonly<Record<CeilingVariable, string>> = {
    FENCEPOST_MAX_FEE_GWEI: `a fee cap of ${cap} wei per gas is above the ceiling of ${ceilings.feePerGas}`,
    FENCEPOST_MAX_GAS_COST_WEI: `${gasWords} = ${gasCost} wei is above the ceiling of ${ceilings.gasCost}`,
    FENCEPOST_MAX_COST_WEI: `value ${value} + ${gasWords} = ${value + gasCost} wei is above the ceiling of ${ceilings.cost}`,
  };
  const detail = `${said[limit.variable]} (${limit.variable})`;
  return new FencepostError("SUBMISSION_REJECTED", detail, { reason: "FEE_OVER_CEILING" });
}

/** Text that names the ceiling and the setting to change. */
export function limitInWords(limit: FeeLimit): string {
  return `the ceiling of ${larger(limit.most, 0n)} wei per gas (${sourceInWords(limit)})`;
}

export function sourceInWords({ variable, timesFirst }: FeeLimit): string {
  if (timesFirst === undefined) return variable;
  return `${timesFirst} times its first price; ${variable} sets another`;
}

/** Divides an amount by the gas; -1 if the amount is negative. */
function shared(amount: bigint, gas: bigint) {
  return amount < 0n ? -1n : amount / (gas > 0n ? gas : 1n);
}
