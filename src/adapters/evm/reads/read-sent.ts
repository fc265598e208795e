import { numberToHex } from "viem/utils";
import type { Address, Hash } from "../../../domain/lane.ts";
import type { Fees } from "../../../domain/transaction/fees.ts";
import type { ChainTransaction } from "../../../ports/chain.ts";
import type { Endpoint } from "../rpc/endpoints.ts";
import { type Batch, callOne, fetchNumber, saysNoSuchBlock } from "../rpc/read-block.ts";
import {
  BadAnswer,
  type Fields,
  memberReader,
  type RpcReply,
  read,
  resultOf,
  saying,
  saysMethodUnsupported,
} from "../rpc/rpc-errors.ts";
import type { RpcCall } from "../rpc/wire.ts";

/** Fetches an address's transaction count at a block; null if the node has pruned that state. */
export async function fetchCountAt(rpc: Batch, address: Address, blockNumber: number): Promise<number | null> {
  const count = await callOne(rpc, { method: COUNT, params: [address, numberToHex(blockNumber)] }, saysStateGone);
  return count === undefined ? null : read.number(count, COUNT);
}

/**
 * Fetches the transactions of one address in a block. Transactions of other senders are not decoded: a rollup may have
 * types that are unknown here.
 */
export async function fetchSentInBlock(rpc: Batch, address: Address, blockNumber: number) {
  const call = { method: "eth_getBlockByNumber", params: [numberToHex(blockNumber), true] };
  const fields = read.optional(read.record)(await callOne(rpc, call, saysNoSuchBlock), "the block");
  if (fields === null) return null;
  const member = memberReader(fields, "block");
  const block = { number: member(read.number, "number"), hash: member(read.hash, "hash") };
  if (block.number !== blockNumber) throw new BadAnswer("it answered with another block");
  return member(read.array, "transactions")
    .map((each) => read.record(each, "block.transactions[]"))
    .filter((each) => read.address(each.from, "transaction.from") === address)
    .map((each) => ({ ...readTransaction(each), block }));
}

/** Fetches a transaction by sender and nonce. Erigon, Reth and newer geth support this; most nodes do not. */
export async function fetchBySenderAndNonce(rpc: Batch, address: Address, nonce: number) {
  const result = await callOne(rpc, bySenderAndNonce(address, nonce), saysMethodUnsupported);
  return result === undefined ? "unsupported" : askedFor(result, { from: address, nonce });
}

export async function fetchTransaction(rpc: Batch, txHash: Hash): Promise<ChainTransaction | null> {
  return askedFor(await callOne(rpc, { method: "eth_getTransactionByHash", params: [txHash] }), { txHash });
}

function bySenderAndNonce(address: Address, nonce: number): RpcCall {
  return { method: "eth_getTransactionBySenderAndNonce", params: [address, numberToHex(nonce)] };
}

function askedFor(result: unknown, asked: Partial<ChainTransaction>): ChainTransaction | null {
  if (result === null) return null;
  const found = readTransaction(read.record(result, "the transaction"));
  const { txHash = found.txHash, from = found.from, nonce = found.nonce } = asked;
  if (found.txHash === txHash && found.from === from && found.nonce === nonce) return found;
  throw new BadAnswer("it answered with another transaction");
}

function readTransaction(fields: Fields): ChainTransaction {
  const member = memberReader(fields, "transaction");
  const blockHash = member(read.optional(read.hash), "blockHash");
  return {
    txHash: member(read.hash, "hash"),
    from: member(read.address, "from"),
    nonce: member(read.number, "nonce"),
    to: member(read.optional(read.address), "to"),
    value: member(read.bigint, "value"),
    data: read.bytes(fields.input ?? fields.data, "transaction.input"),
    gas: member(read.gas, "gas"),
    fees: readFees(fields),
    block: blockHash && { number: member(read.number, "blockNumber"), hash: blockHash },
  };
}

function readFees(fields: Fields): Fees {
  const member = memberReader(fields, "transaction");
  const maxFeePerGas = member(read.optional(read.bigint), "maxFeePerGas");
  if (maxFeePerGas !== null) {
    return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: member(read.bigint, "maxPriorityFeePerGas") };
  }
  return { type: fields.type === "0x1" ? "eip2930" : "legacy", gasPrice: member(read.bigint, "gasPrice") };
}

/**
 * Recognizes an error that means "state is pruned". geth: "missing trie node", "historical state … is not available";
 * Erigon: "old data not available due to pruning"; Reth: "state at block … is pruned"; Nethermind: "No state
 * available"; Besu: "World state unavailable"; gateways: "archive". Only texts about state match: an unknown block is
 * not pruned state.
 */
const saysStateGone = saying(
  [],
  /missing trie node|(historical |world |no )?state.*(not |un)available|no state available|prun(ed|ing)|archive/i,
);

const COUNT = "eth_getTransactionCount";
const HEAD = "eth_blockNumber";

type CountTag = "latest" | "pending";

export const fetchCount = (rpc: Batch, address: Address, tag: CountTag) => fetchNumber(rpc, COUNT, [address, tag]);

/** A batch request that collects calls until the end of the current tick. */
interface Gathering {
  readonly calls: RpcCall[];
  readonly replies: Promise<readonly RpcReply[]>;
}

/**
 * Reads transaction counts together with the endpoint's newest block number. All counts requested from one endpoint in
 * one tick share one `eth_blockNumber`. It is the first call of the batch; if the calls need several requests, its
 * response arrives before the others are sent. A block number read after a count would claim blocks that the count does
 * not include.
 */
export function countsAtHead() {
  const gatherings = new Map<Endpoint, Gathering>();

  function gather(endpoint: Endpoint) {
    const open = gatherings.get(endpoint);
    if (open !== undefined && open.calls.length < endpoint.rpc.callsAtOnce()) return open;
    const calls: RpcCall[] = [{ method: HEAD, params: [] }];
    const replies = Promise.resolve().then(() => {
      if (gatherings.get(endpoint)?.calls === calls) gatherings.delete(endpoint);
      return endpoint.rpc.readInOrder(calls);
    });
    gatherings.set(endpoint, { calls, replies });
    return { calls, replies };
  }

  /** A call that the node refuses fails alone; the other calls of the batch still get their results. */
  return async (endpoint: Endpoint, address: Address, tag: CountTag) => {
    const { calls, replies } = gather(endpoint);
    const at = calls.push({ method: COUNT, params: [address, tag] }) - 1;
    const answers = await replies;
    return { head: read.number(resultOf(answers[0]), HEAD), count: read.number(resultOf(answers[at]), COUNT) };
  };
}

/**
 * Fetches the hashes of one sender's transactions in the node's pool, by nonce. geth and Reth serve
 * `txpool_contentFrom`; Erigon and some rollups serve `eth_getTransactionBySenderAndNonce`. Null if the node serves
 * neither, which is common for hosted nodes.
 */
export async function fetchPooled(rpc: Batch, address: Address, nonces: readonly number[]) {
  const shown = await callOne(rpc, { method: "txpool_contentFrom", params: [address] }, saysMethodUnsupported);
  if (shown !== undefined) return fromContent(shown, nonces);
  const replies = await rpc.batch(nonces.map((nonce) => bySenderAndNonce(address, nonce)));
  const found = replies.map((reply) => resultOf(reply, saysMethodUnsupported));
  return found.includes(undefined) ? null : found.map(hashOf);
}

function fromContent(content: unknown, nonces: readonly number[]): readonly (Hash | null)[] {
  const { pending, queued } = read.record(content, "txpool_contentFrom");
  const byNonce = { ...Object(queued), ...Object(pending) } as Fields;
  return nonces.map((nonce) => hashOf(byNonce[String(nonce)] ?? null));
}

function hashOf(transaction: unknown) {
  const fields = read.optional(read.record)(transaction, "a pooled transaction");
  return fields && read.hash(fields.hash, "a pooled transaction's hash");
}
