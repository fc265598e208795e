import type { Address, Hex } from "../lane.ts";
import type { Payload } from "../transaction/transaction.ts";

/**
 * Minimum gas of a transaction before its first instruction (Yellow Paper, EIP-2028, EIP-2930, EIP-3860). The calldata
 * floor of EIP-7623 is left to the node, because not every chain has it.
 */
export function intrinsicGas(payload: Pick<Payload, "to" | "data" | "accessList">): bigint {
  const { zero, nonZero } = countBytes(payload.data);
  let gas = 21_000 + zero * 4 + nonZero * 16;
  if (payload.to === null) gas += 32_000 + Math.ceil((zero + nonZero) / 32) * 2;
  for (const entry of payload.accessList ?? []) gas += 2_400 + entry.storageKeys.length * 1_900;
  return BigInt(gas);
}

/**
 * Gas of a transfer to an account without code; one more than 21,000, because a node's binary search may return that.
 */
const PLAIN_TRANSFER_GAS = 21_001n;

/**
 * Adds a margin to an estimate. An estimate is exact only for the state in which it was made, so calls of code get a
 * fifth on top for later states. `most`: the chain's gas limit. The margin does not lift an estimate above it, because
 * the chain would refuse more; an estimate already above it stays above.
 */
export function withMargin(estimate: bigint, payload: Pick<Payload, "to" | "data">, most: bigint | null): bigint {
  if (payload.to !== null && payload.data === "0x" && estimate <= PLAIN_TRANSFER_GAS) return estimate;
  const padded = estimate + estimate / 5n;
  return most !== null && padded > most && estimate <= most ? most : padded;
}

const IN_PROPORTION = 10n;

/**
 * True if an estimate is implausibly high compared with the payload's minimum gas: an expensive payload then needs a
 * second endpoint's estimate.
 */
export function isOutOfProportion(estimate: bigint, payload: Pick<Payload, "to" | "data" | "accessList">): boolean {
  return estimate > IN_PROPORTION * intrinsicGas(payload);
}

function countBytes(data: Hex): { zero: number; nonZero: number } {
  let zero = 0;
  for (let i = 2; i < data.length; i += 2) if (data[i] === "0" && data[i + 1] === "0") zero++;
  return { zero, nonZero: (data.length - 2) / 2 - zero };
}

/** Gas cap per transaction by EIP-7825: at most 2^24 gas, in any block. */
export const EIP_7825_CAP = 16_777_216n;

/**
 * Known gas rules by chain id, in two lists. Other chains are assumed to have no cap per transaction, and to charge a
 * transfer by their own estimate.
 *
 * Chains with EIP-7825: Ethereum (December 2025) and its test networks Sepolia, Holesky and Hoodi, Gnosis Chain (April
 * 2026), BNB Smart Chain and its test network (BEP-652, April 2026), Base and Base Sepolia (Azul). Polygon PoS has
 * another cap, and others may follow: those are learned from a refusal, or set as `maxTransactionGas`.
 */
const EIP_7825_CHAINS: ReadonlySet<number> = new Set([
  ...[1, 11_155_111, 17_000, 560_048],
  ...[56, 97, 100, 8_453, 84_532],
]);

/**
 * Chains on which a transfer to an account without code always uses 21,000 gas. Rollups are listed if their data fee is
 * separate (OP stack, Scroll, Linea); Arbitrum, zkSync, Mantle and Filecoin charge it as gas.
 */
const EXACT_TRANSFER_CHAINS: ReadonlySet<number> = new Set([
  ...[1, 11_155_111, 17_000, 560_048],
  ...[10, 11_155_420, 8_453, 84_532],
  ...[56, 97, 100, 10_200, 137, 80_002, 43_114, 43_113, 59_144, 534_352],
  // Local development chains: Hardhat, EDR and anvil.
  31_337,
]);

/**
 * Highest reserved address. Precompiled contracts are at or below it: they have no code, although calling them costs
 * gas.
 */
const LAST_RESERVED_ADDRESS = 0xffffn;

/** Known gas cap per transaction of a chain; null if none is known. */
export function knownGasCap(chainId: number): bigint | null {
  return EIP_7825_CHAINS.has(chainId) ? EIP_7825_CAP : null;
}

/**
 * Gas of a plain transfer to a receiver without code, on chains where it is always the same. Null if an estimate is
 * needed, for example if the payload has data or an access list.
 */
export function plainTransferGas(chainId: number, payload: Pick<Payload, "to" | "data" | "accessList">): bigint | null {
  const { to, data, accessList = [] } = payload;
  if (to === null || data !== "0x" || accessList.length > 0 || isReserved(to)) return null;
  return EXACT_TRANSFER_CHAINS.has(chainId) ? intrinsicGas(payload) : null;
}

function isReserved(address: Address) {
  return BigInt(address) <= LAST_RESERVED_ADDRESS;
}

/** Gas limit of a transaction, and its source. */
export interface GasLimit {
  readonly gas: bigint;
  readonly of: "block" | "transaction";
}

/** The lower of the block's and the transaction's gas limit, as far as known; null if neither is. */
export function lowerLimit(block: bigint | null, transaction: bigint | null): GasLimit | null {
  if (transaction !== null && (block === null || transaction < block)) return { gas: transaction, of: "transaction" };
  return block === null ? null : { gas: block, of: "block" };
}

/** Error text for gas above the limit; null if it is within the limit, or no limit is known. */
export function gasOverLimit(gas: bigint, limit: GasLimit | null): string | null {
  if (limit === null || gas <= limit.gas) return null;
  const whose = limit.of === "block" ? "the block's limit" : "the limit of this chain for one transaction";
  return `gas ${gas} is above ${whose}, ${limit.gas}`;
}
