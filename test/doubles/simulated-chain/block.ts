import { createHash } from "node:crypto";
import { getContractAddress } from "viem/utils";
import type { Address, Hash, Hex } from "../../../src/domain/lane.ts";
import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import type { Undo } from "./ledger.ts";
import type { SimulatedTransaction } from "./transaction.ts";

export interface SimulatedBlock {
  readonly number: number;
  readonly hash: Hash;
  readonly parentHash: Hash;
  readonly timestamp: number;
  readonly baseFeePerGas: bigint | null;
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  readonly transactions: readonly Executed[];
  readonly undo: Undo;
}

export interface Executed {
  readonly transaction: SimulatedTransaction;
  readonly reverted: boolean;
  readonly gasUsed: bigint;
  readonly effectiveGasPrice: bigint;
}

/** `salt` distinguishes branches: two blocks with the same height, parent and content get different hashes. */
export function blockHash(content: {
  readonly number: number;
  readonly parentHash: Hash;
  readonly salt: string;
  readonly hashes: readonly Hash[];
}): Hash {
  const text = `${content.number}:${content.parentHash}:${content.salt}:${content.hashes.join()}`;
  return `0x${createHash("sha256").update(text).digest("hex")}`;
}

/** The price per unit of gas that the sender pays (EIP-1559): base fee plus tip, limited by the cap. */
export function effectiveGasPrice(transaction: SimulatedTransaction, baseFee: bigint | null): bigint {
  if (baseFee === null) return transaction.maxFeePerGas;
  const wished = baseFee + transaction.maxPriorityFeePerGas;
  return wished < transaction.maxFeePerGas ? wished : transaction.maxFeePerGas;
}

export function receiptOf(block: SimulatedBlock, index: number): Receipt {
  const { transaction, reverted, gasUsed, effectiveGasPrice: price } = block.transactions[index] as Executed;
  return {
    txHash: transaction.hash,
    blockNumber: block.number,
    blockHash: block.hash,
    transactionIndex: index,
    status: reverted ? "reverted" : "success",
    gasUsed,
    effectiveGasPrice: price,
    contractAddress: transaction.to === null ? contractAddress(transaction.from, transaction.nonce) : null,
    ...(transaction.blobs && { besideGas: transaction.blobs.gas * blobPrice(transaction.blobs) }),
  };
}

/** The price that this chain charges per unit of blob gas: half of the fee cap that the transaction offers. */
export function blobPrice({ feeCap }: NonNullable<SimulatedTransaction["blobs"]>): bigint {
  return feeCap / 2n;
}

function contractAddress(from: Address, nonce: number): Address {
  return getContractAddress({ from, nonce: BigInt(nonce) }).toLowerCase() as Address;
}

/** A transaction of another program that shares the key: it has a nonce and a hash, but no bytes. */
export function foreignTransaction(from: Address, nonce: number, serial: number): SimulatedTransaction {
  const hash: Hex = `0x${createHash("sha256").update(`foreign:${from}:${nonce}:${serial}`).digest("hex")}`;
  return {
    hash,
    raw: null,
    from,
    type: 2,
    nonce,
    to: from,
    value: 0n,
    data: "0x",
    gas: 21_000n,
    maxFeePerGas: 1_000_000_000_000n,
    maxPriorityFeePerGas: 2_000_000_000n,
    intrinsicGas: 21_000n,
  };
}

export function tipOf(executed: Executed, baseFee: bigint | null): bigint {
  return executed.effectiveGasPrice - (baseFee ?? 0n);
}
