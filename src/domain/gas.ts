import type { Address, Hex } from "./lane.ts";
import type { Payload } from "./transaction.ts";

/**
 * The least gas a transaction costs before its first instruction (Yellow Paper, EIP-2028, EIP-2930, EIP-3860, and the
 * calldata floor of EIP-7623 is left to the node: a chain without it would refuse nothing).
 */
export function intrinsicGas(payload: Pick<Payload, "to" | "data" | "accessList">): bigint {
  const { zero, nonZero } = countBytes(payload.data);
  let gas = 21_000 + zero * 4 + nonZero * 16;
  if (payload.to === null) gas += 32_000 + Math.ceil((zero + nonZero) / 32) * 2;
  for (const entry of payload.accessList ?? []) gas += 2_400 + entry.storageKeys.length * 1_900;
  return BigInt(gas);
}

/** What a transfer to an account without code costs, always; a node that searches for it may end one above. */
const PLAIN_TRANSFER_GAS = 21_001n;

/**
 * Estimates are exact for the state they saw; whatever runs code gets a fifth on top for the state it will meet. `most` is
 * what the chain takes at all: the margin ends there, since a chain refuses what asks for more.
 */
export function withMargin(estimate: bigint, payload: Pick<Payload, "to" | "data">, most: bigint | null): bigint {
  if (payload.to !== null && payload.data === "0x" && estimate <= PLAIN_TRANSFER_GAS) return estimate;
  const padded = estimate + estimate / 5n;
  return most !== null && padded > most && estimate <= most ? most : padded;
}

const IN_PROPORTION = 10n;

/** So far above what a payload costs at least that one endpoint's word alone is not enough where much money hangs on it. */
export function isOutOfProportion(estimate: bigint, payload: Pick<Payload, "to" | "data" | "accessList">): boolean {
  return estimate > IN_PROPORTION * intrinsicGas(payload);
}

function countBytes(data: Hex): { zero: number; nonZero: number } {
  let zero = 0;
  for (let i = 2; i < data.length; i += 2) if (data[i] === "0" && data[i + 1] === "0") zero++;
  return { zero, nonZero: (data.length - 2) / 2 - zero };
}

/** EIP-7825: no transaction may ask for more than 2^24 gas, however large the block is. */
export const EIP_7825_CAP = 16_777_216n;

/**
 * What single chains are known to do with gas stands in two lists, by chain id. A chain that is not listed is assumed to do
 * neither: to cap no transaction below its block, and to charge a transfer whatever its own estimate says.
 *
 * Chains that have EIP-7825: Ethereum (December 2025) and its test networks Sepolia, Holesky and Hoodi, Gnosis Chain (April
 * 2026), BNB Smart Chain and its test network (BEP-652, April 2026), Base and Base Sepolia (Azul). Polygon PoS has a cap of
 * another height, and others may follow: theirs is learned from a refusal, or set as `maxTransactionGas`.
 */
const EIP_7825_CHAINS: ReadonlySet<number> = new Set([
  ...[1, 11_155_111, 17_000, 560_048],
  ...[56, 97, 100, 8_453, 84_532],
]);

/**
 * Chains on which a transfer to an account without code uses 21,000 gas, always. Rollups are listed where what they pay to
 * their parent chain is a fee of its own (OP stack, Scroll, Linea); Arbitrum, zkSync, Mantle and Filecoin charge it as gas.
 */
const EXACT_TRANSFER_CHAINS: ReadonlySet<number> = new Set([
  ...[1, 11_155_111, 17_000, 560_048],
  ...[10, 11_155_420, 8_453, 84_532],
  ...[56, 97, 100, 10_200, 137, 80_002, 43_114, 43_113, 59_144, 534_352],
  // Hardhat, EDR and anvil.
  31_337,
]);

/** Precompiled contracts live below this address: they have no code, and running them costs gas. */
const LAST_RESERVED_ADDRESS = 0xffffn;

/** Null: no cap is known for this chain. */
export function knownGasCap(chainId: number): bigint | null {
  return EIP_7825_CHAINS.has(chainId) ? EIP_7825_CAP : null;
}

/**
 * What a payload costs on this chain where its receiver has no code; null where only the chain can tell. An access list is
 * paid for besides, and only by chains that charge for it as Ethereum does.
 */
export function plainTransferGas(chainId: number, payload: Pick<Payload, "to" | "data" | "accessList">): bigint | null {
  const { to, data, accessList = [] } = payload;
  if (to === null || data !== "0x" || accessList.length > 0 || isReserved(to)) return null;
  return EXACT_TRANSFER_CHAINS.has(chainId) ? intrinsicGas(payload) : null;
}

function isReserved(address: Address): boolean {
  return BigInt(address) <= LAST_RESERVED_ADDRESS;
}

/** The most gas that a transaction may ask for, and who says so. */
export interface GasLimit {
  readonly gas: bigint;
  readonly of: "block" | "transaction";
}

/** The lower of the two, as far as they are known; null: neither is. */
export function lowerLimit(block: bigint | null, transaction: bigint | null): GasLimit | null {
  if (transaction !== null && (block === null || transaction < block)) return { gas: transaction, of: "transaction" };
  return block === null ? null : { gas: block, of: "block" };
}

/** Null: it is within the limit, or no limit is known. */
export function gasOverLimit(gas: bigint, limit: GasLimit | null): string | null {
  if (limit === null || gas <= limit.gas) return null;
  const whose = limit.of === "block" ? "the block's limit" : "the limit of this chain for one transaction";
  return `gas ${gas} is above ${whose}, ${limit.gas}`;
}
