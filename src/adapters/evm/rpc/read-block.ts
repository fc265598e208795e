import { numberToHex } from "viem/utils";
import type { Hash } from "../../../domain/lane.ts";
import type { Block, BlockTag, ChainIdentity } from "../../../ports/chain.ts";
import { headerHash } from "../proof/worker/header.js";
import {
  BadAnswer,
  type Fields,
  memberReader,
  RpcErrorAnswer,
  type RpcReply,
  read,
  resultOf,
  saying,
} from "./rpc-errors.ts";
import type { RpcTransport } from "./transport.ts";
import type { RpcCall } from "./wire.ts";

export type Batch = Pick<RpcTransport, "batch">;

/** Makes one call. Returns undefined if `saysNone` matches the node's error; throws any other error. */
export async function callOne(rpc: Batch, call: RpcCall, saysNone?: (error: unknown) => boolean): Promise<unknown> {
  return resultOf((await rpc.batch([call]))[0], saysNone);
}

/** Makes a call whose result is a number. */
export async function fetchNumber(rpc: Batch, method: string, params: readonly unknown[] = []): Promise<number> {
  return read.number(await callOne(rpc, { method, params }), method);
}

export const fetchChainId = (rpc: Batch) => fetchNumber(rpc, "eth_chainId");
export const fetchBlockNumber = (rpc: Batch) => fetchNumber(rpc, "eth_blockNumber");

/**
 * Parses a block with transaction hashes; null if the node has no such block. Throws `BadAnswer` for any other value.
 */
export function readBlock(value: unknown): Block | null {
  if (value === null) return null;
  const block = read.record(value, "the block");
  const member = memberReader(block, "block");
  const hash = member(read.hash, "hash");
  return {
    number: member(read.number, "number"),
    hash,
    parentHash: member(read.hash, "parentHash"),
    transactionHashes: member(read.array, "transactions").map((each) => read.hash(each, "block.transactions[]")),
    baseFeePerGas: member(read.optional(read.bigint), "baseFeePerGas"),
    gasLimit: member(read.bigint, "gasLimit"),
    headerHolds: hashesTo(block, hash),
  };
}

/** True if the header's fields hash to `hash`. False also for a chain that has additional header fields. */
function hashesTo(block: Fields, hash: Hash) {
  try {
    return headerHash(block) === hash;
  } catch (error) {
    if (error instanceof BadAnswer) return false;
    throw error;
  }
}

/**
 * Parses a block and checks that it is the requested one: an endpoint that returns another block is faulty or
 * malicious.
 */
function blockFrom(reply: RpcReply | undefined, asked: number | Hash) {
  const block = readBlock(resultOf(reply, saysNoSuchBlock) ?? null);
  if (block === null || block.number === asked || block.hash === asked) return block;
  throw new BadAnswer("it answered with another block");
}

/**
 * Fetches the block of a tag; null if the node does not support the tag or has no such block yet. Throws if there is no
 * `latest` block.
 */
export async function fetchTagged(rpc: Batch, tag: BlockTag): Promise<Block | null> {
  const saysNone = tag === "latest" ? undefined : (error: unknown) => saysNoSuchBlock(error) || refusesTag(error);
  const call = { method: "eth_getBlockByNumber", params: [tag, false] };
  const block = readBlock((await callOne(rpc, call, saysNone)) ?? null);
  if (block === null && tag === "latest") throw new BadAnswer("it has no latest block");
  return block;
}

/**
 * Fetches blocks by hash, or canonical blocks by number, in the order requested; null for a block that the node does
 * not have.
 */
export async function fetchBlocks(rpc: Batch, asked: readonly (number | Hash)[]): Promise<readonly (Block | null)[]> {
  const replies = await rpc.batch(asked.map(blockCall));
  return asked.map((each, index) => blockFrom(replies[index], each));
}

function blockCall(asked: number | Hash): RpcCall {
  if (typeof asked === "string") return { method: "eth_getBlockByHash", params: [asked, false] };
  return { method: "eth_getBlockByNumber", params: [numberToHex(asked), false] };
}

/** Fetches chain id and genesis hash: two chains with the same id have different genesis blocks. */
export async function fetchIdentity(rpc: Batch): Promise<ChainIdentity> {
  const [chainId, genesis] = await rpc.batch([{ method: "eth_chainId", params: [] }, blockCall(0)]);
  // A node that has deleted old history (EIP-4444) refuses block 0 with its own error text. Then only the chain id is
  // compared.
  const refused = genesis?.ok === false && genesis.error instanceof RpcErrorAnswer;
  return {
    chainId: read.number(resultOf(chainId), "eth_chainId"),
    genesisHash: refused ? null : (blockFrom(genesis, 0)?.hash ?? null),
  };
}

/**
 * Recognizes an error that means "no such block": -39001 (execution-apis), -32001 (EIP-1474, Reth), "finalized block
 * not found" (geth).
 */
export const saysNoSuchBlock = saying([-39001, -32001], /(block|header) not found|unknown block/i);

/**
 * Recognizes an error that means "unknown tag": nodes from before the merge, and rollups without finality tags, refuse
 * `safe` and `finalized`.
 */
const refusesTag = saying([-32602, -32601, -32004]);
