import { numberToHex } from "viem/utils";
import type { Fees } from "../../domain/fees.ts";
import type { Address, Hash } from "../../domain/lane.ts";
import type { ChainTransaction } from "../../ports/chain.ts";
import { saysNoSuchBlock } from "./read-block.ts";
import { BadAnswer, read } from "./rpc/quantities.ts";
import { RpcErrorAnswer, resultOf, saysMethodUnsupported } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";

type Fields = Readonly<Record<string, unknown>>;
type Batch = Pick<RpcTransport, "batch">;

/** The count as of a block; null where the node no longer keeps that state. */
export async function fetchCountAt(rpc: Batch, address: Address, blockNumber: number): Promise<number | null> {
  const params = [address, numberToHex(blockNumber)];
  const [reply] = await rpc.batch([{ method: "eth_getTransactionCount", params }]);
  const count = resultOf(reply, saysStateGone);
  return count === undefined ? null : read.number(count, "eth_getTransactionCount");
}

/** What one address sent in a block. Others' transactions are not looked at: a rollup's own kinds need not be known. */
export async function fetchSentInBlock(
  rpc: Batch,
  address: Address,
  blockNumber: number,
): Promise<readonly ChainTransaction[] | null> {
  const [reply] = await rpc.batch([{ method: "eth_getBlockByNumber", params: [numberToHex(blockNumber), true] }]);
  const fields = read.optional(read.record, resultOf(reply, saysNoSuchBlock), "the block");
  if (fields === null) return null;
  const block = { number: read.number(fields.number, "block.number"), hash: read.hash(fields.hash, "block.hash") };
  if (block.number !== blockNumber) throw new BadAnswer("it answered with another block");
  return read
    .array(fields.transactions, "block.transactions")
    .map((each) => read.record(each, "block.transactions[]"))
    .filter((each) => read.address(each.from, "transaction.from") === address)
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
  const found = readTransaction(read.record(result, "the transaction"));
  const { txHash = found.txHash, from = found.from, nonce = found.nonce } = asked;
  if (found.txHash === txHash && found.from === from && found.nonce === nonce) return found;
  throw new BadAnswer("it answered with another transaction");
}

function readTransaction(fields: Fields): ChainTransaction {
  const blockHash = read.optional(read.hash, fields.blockHash, "transaction.blockHash");
  return {
    txHash: read.hash(fields.hash, "transaction.hash"),
    from: read.address(fields.from, "transaction.from"),
    nonce: read.number(fields.nonce, "transaction.nonce"),
    to: read.optional(read.address, fields.to, "transaction.to"),
    value: read.bigint(fields.value, "transaction.value"),
    data: read.bytes(fields.input ?? fields.data, "transaction.input"),
    gas: read.gas(fields.gas, "transaction.gas"),
    fees: readFees(fields),
    block: blockHash && { number: read.number(fields.blockNumber, "transaction.blockNumber"), hash: blockHash },
  };
}

function readFees(fields: Fields): Fees {
  const maxFeePerGas = read.optional(read.bigint, fields.maxFeePerGas, "transaction.maxFeePerGas");
  if (maxFeePerGas !== null) {
    const maxPriorityFeePerGas = read.bigint(fields.maxPriorityFeePerGas, "transaction.maxPriorityFeePerGas");
    return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas };
  }
  const type = fields.type === "0x1" ? "eip2930" : "legacy";
  return { type, gasPrice: read.bigint(fields.gasPrice, "transaction.gasPrice") };
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
