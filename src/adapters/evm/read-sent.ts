import { numberToHex } from "viem/utils";
import type { Fees } from "../../domain/fees.ts";
import type { Address, Hash } from "../../domain/lane.ts";
import type { ChainTransaction } from "../../ports/chain.ts";
import { saysNoSuchBlock } from "./read-block.ts";
import {
  BadAnswer,
  optional,
  readAddress,
  readArray,
  readBigInt,
  readBytes,
  readGas,
  readHash,
  readNumber,
  readRecord,
} from "./rpc/quantities.ts";
import { RpcErrorAnswer, resultOf, saysMethodUnsupported } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";

type Fields = Readonly<Record<string, unknown>>;
type Batch = Pick<RpcTransport, "batch">;

/** The count as of a block; null where the node no longer keeps that state. */
export async function fetchCountAt(rpc: Batch, address: Address, blockNumber: number): Promise<number | null> {
  const params = [address, numberToHex(blockNumber)];
  const [reply] = await rpc.batch([{ method: "eth_getTransactionCount", params }]);
  const count = resultOf(reply, saysStateGone);
  return count === undefined ? null : readNumber(count, "eth_getTransactionCount");
}

/** What one address sent in a block. Others' transactions are not looked at: a rollup's own kinds need not be known. */
export async function fetchSentInBlock(
  rpc: Batch,
  address: Address,
  blockNumber: number,
): Promise<readonly ChainTransaction[] | null> {
  const [reply] = await rpc.batch([{ method: "eth_getBlockByNumber", params: [numberToHex(blockNumber), true] }]);
  const fields = optional(readRecord, resultOf(reply, saysNoSuchBlock), "the block");
  if (fields === null) return null;
  const block = { number: readNumber(fields.number, "block.number"), hash: readHash(fields.hash, "block.hash") };
  if (block.number !== blockNumber) throw new BadAnswer("it answered with another block");
  return readArray(fields.transactions, "block.transactions")
    .map((each) => readRecord(each, "block.transactions[]"))
    .filter((each) => readAddress(each.from, "transaction.from") === address)
    .map((each) => ({ ...readTransaction(each), block }));
}

/** Erigon, Reth and newer geth look a transaction up by sender and nonce; most nodes do not. */
export async function fetchBySenderAndNonce(
  rpc: Batch,
  address: Address,
  nonce: number,
): Promise<ChainTransaction | null | "unsupported"> {
  const params = [address, numberToHex(nonce)];
  const [reply] = await rpc.batch([{ method: "eth_getTransactionBySenderAndNonce", params }]);
  const result = resultOf(reply, saysMethodUnsupported);
  return result === undefined ? "unsupported" : askedFor(result, { from: address, nonce });
}

export async function fetchTransaction(rpc: Batch, txHash: Hash): Promise<ChainTransaction | null> {
  const [reply] = await rpc.batch([{ method: "eth_getTransactionByHash", params: [txHash] }]);
  return askedFor(resultOf(reply), { txHash });
}

function askedFor(result: unknown, asked: Partial<ChainTransaction>): ChainTransaction | null {
  if (result === null) return null;
  const found = readTransaction(readRecord(result, "the transaction"));
  const { txHash = found.txHash, from = found.from, nonce = found.nonce } = asked;
  if (found.txHash === txHash && found.from === from && found.nonce === nonce) return found;
  throw new BadAnswer("it answered with another transaction");
}

function readTransaction(fields: Fields): ChainTransaction {
  const blockHash = optional(readHash, fields.blockHash, "transaction.blockHash");
  return {
    txHash: readHash(fields.hash, "transaction.hash"),
    from: readAddress(fields.from, "transaction.from"),
    nonce: readNumber(fields.nonce, "transaction.nonce"),
    to: optional(readAddress, fields.to, "transaction.to"),
    value: readBigInt(fields.value, "transaction.value"),
    data: readBytes(fields.input ?? fields.data, "transaction.input"),
    gas: readGas(fields.gas, "transaction.gas"),
    fees: readFees(fields),
    block: blockHash && { number: readNumber(fields.blockNumber, "transaction.blockNumber"), hash: blockHash },
  };
}

function readFees(fields: Fields): Fees {
  const maxFeePerGas = optional(readBigInt, fields.maxFeePerGas, "transaction.maxFeePerGas");
  if (maxFeePerGas !== null) {
    const maxPriorityFeePerGas = readBigInt(fields.maxPriorityFeePerGas, "transaction.maxPriorityFeePerGas");
    return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas };
  }
  const type = fields.type === "0x1" ? "eip2930" : "legacy";
  return { type, gasPrice: readBigInt(fields.gasPrice, "transaction.gasPrice") };
}

/**
 * geth: "missing trie node", "historical state … is not available"; Erigon: "old data not available due to pruning";
 * Reth: "state at block … is pruned"; Nethermind: "No state available"; Besu: "World state unavailable"; gateways:
 * "archive". Only words about state: a block that is unknown is no sign of pruning.
 */
const STATE_GONE_TEXT =
  /missing trie node|(historical |world |no )?state.*(not |un)available|no state available|prun(ed|ing)|archive/i;

function saysStateGone(error: unknown): boolean {
  return error instanceof RpcErrorAnswer && STATE_GONE_TEXT.test(error.message);
}
