import type { Transaction } from "../../src/contract/schemas/transaction-schema.ts";

type Attempt = Transaction["attempts"][number];

export const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
export const RECIPIENT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

export const hashOf = (ordinal: number): `0x${string}` => `0x${String(ordinal).padStart(64, "a")}`;

export function attempt(ordinal: number, kind: Attempt["kind"]): Attempt {
  return {
    ...{ ordinal, kind, txHash: hashOf(ordinal), gas: "21000", type: "eip1559", firstSentAt: null },
    ...{ maxFeePerGas: "2000000000", maxPriorityFeePerGas: "1", createdAt: "2026-11-17T00:00:00.000Z" },
  };
}

/**
 * A node's response about a transaction in flight. `mined` is the ordinal of the attempt that is in a block, if any.
 */
export function sampleTransaction(given: Partial<Transaction> = {}, mined?: number): Transaction {
  const receipt = { blockNumber: 7, blockHash: hashOf(0), transactionIndex: 0, status: "success" } as const;
  const paid = { gasUsed: "21000", effectiveGasPrice: "1", contractAddress: null } as const;
  return {
    ...{ txId: "tx-1", chainId: 31337, signer: SIGNER, requestId: "r", owner: null, nonce: 4, metadata: null },
    ...{ state: "TRACKING", subState: null, txHash: null, gas: "21000", lastError: null, submitAttempts: 0 },
    payload: { to: RECIPIENT, data: "0x", value: "5" },
    attempts: [attempt(1, "initial")],
    receipt: mined === undefined ? null : { ...receipt, ...paid, txHash: hashOf(mined) },
    ...{ lastSubmittedAt: null, nextResubmitAt: null, confirmedAt: null, validUntil: null, heldSince: null },
    ...{ createdAt: "2026-11-17T00:00:00.000Z", updatedAt: "2026-11-17T00:00:00.000Z" },
    ...given,
  };
}
