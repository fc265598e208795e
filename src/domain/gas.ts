import type { Hex } from "./lane.ts";
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
