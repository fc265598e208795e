import type { Receipt } from "../../../src/domain/transaction/transaction.ts";
import { blobPrice, type Executed, receiptOf, type SimulatedBlock } from "./block.ts";
import type { Place } from "./block-store.ts";
import type { SimulatedTransaction } from "./transaction.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const EMPTY_BLOOM = `0x${"0".repeat(512)}`;
const ZERO_HASH = `0x${"0".repeat(64)}`;
const ZERO_ADDRESS = `0x${"0".repeat(40)}`;
/** keccak256 of an empty RLP list: the `sha3Uncles` of a block without uncles. */
const NO_UNCLES = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347";

export function quantity(value: number | bigint): string {
  return `0x${value.toString(16)}`;
}

export function formatBlock(block: SimulatedBlock, full: boolean): Json {
  const transactions = block.transactions.map(({ transaction }, index) =>
    full ? formatTransaction(transaction, { block, index }) : transaction.hash,
  );
  return {
    number: quantity(block.number),
    hash: block.hash,
    parentHash: block.parentHash,
    timestamp: quantity(block.timestamp),
    gasLimit: quantity(block.gasLimit),
    gasUsed: quantity(block.gasUsed),
    ...(block.baseFeePerGas === null ? {} : { baseFeePerGas: quantity(block.baseFeePerGas) }),
    difficulty: "0x0",
    extraData: "0x",
    logsBloom: EMPTY_BLOOM,
    miner: ZERO_ADDRESS,
    mixHash: ZERO_HASH,
    nonce: "0x0000000000000000",
    receiptsRoot: ZERO_HASH,
    sha3Uncles: NO_UNCLES,
    size: quantity(540 + 120 * transactions.length),
    stateRoot: ZERO_HASH,
    transactionsRoot: ZERO_HASH,
    transactions,
    uncles: [],
  };
}

export function formatTransaction(transaction: SimulatedTransaction, place: Place | null): Json {
  const price = place?.block.transactions[place.index]?.effectiveGasPrice ?? transaction.maxFeePerGas;
  return {
    hash: transaction.hash,
    type: quantity(transaction.type),
    from: transaction.from,
    to: transaction.to,
    nonce: quantity(transaction.nonce),
    value: quantity(transaction.value),
    input: transaction.data,
    gas: quantity(transaction.gas),
    gasPrice: quantity(price),
    ...(transaction.type === 2
      ? {
          maxFeePerGas: quantity(transaction.maxFeePerGas),
          maxPriorityFeePerGas: quantity(transaction.maxPriorityFeePerGas),
        }
      : {}),
    blockHash: place?.block.hash ?? null,
    blockNumber: place === null ? null : quantity(place.block.number),
    transactionIndex: place === null ? null : quantity(place.index),
  };
}

export function formatReceipts(block: SimulatedBlock): readonly Json[] {
  let cumulativeGasUsed = 0n;
  return block.transactions.map(({ transaction, gasUsed }, index) => {
    cumulativeGasUsed += gasUsed;
    return formatReceipt(receiptOf(block, index), transaction, cumulativeGasUsed);
  });
}

export function formatReceiptAt({ block, index }: Place): Json {
  const upToHere = block.transactions.slice(0, index + 1);
  const { transaction } = upToHere[index] as Executed;
  const cumulativeGasUsed = upToHere.reduce((sum, { gasUsed }) => sum + gasUsed, 0n);
  return formatReceipt(receiptOf(block, index), transaction, cumulativeGasUsed);
}

function formatReceipt(receipt: Receipt, transaction: SimulatedTransaction, cumulativeGasUsed: bigint): Json {
  return {
    transactionHash: receipt.txHash,
    transactionIndex: quantity(receipt.transactionIndex),
    blockHash: receipt.blockHash,
    blockNumber: quantity(receipt.blockNumber),
    from: transaction.from,
    to: transaction.to,
    type: quantity(transaction.type),
    status: receipt.status === "success" ? "0x1" : "0x0",
    gasUsed: quantity(receipt.gasUsed),
    cumulativeGasUsed: quantity(cumulativeGasUsed),
    effectiveGasPrice: quantity(receipt.effectiveGasPrice ?? 0n),
    contractAddress: receipt.contractAddress,
    ...(transaction.blobs && {
      blobGasUsed: quantity(transaction.blobs.gas),
      blobGasPrice: quantity(blobPrice(transaction.blobs)),
    }),
    logs: [],
    logsBloom: EMPTY_BLOOM,
  };
}
