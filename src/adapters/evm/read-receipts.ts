import type { Hash } from "../../domain/lane.ts";
import type { Receipt } from "../../domain/transaction.ts";
import type { Block } from "../../ports/chain.ts";
import { fetchBlocks, saysNoSuchBlock } from "./read-block.ts";
import type { Endpoint } from "./rpc/endpoint.ts";
import { BadAnswer, type Fields, read } from "./rpc/quantities.ts";
import { RpcErrorAnswer, resultOf, saying, saysMethodUnsupported, withholds } from "./rpc/rpc-errors.ts";
import type { RpcTransport } from "./rpc/transport.ts";

/** A receipt, and what the node showed of it: logs are compared, and not kept. */
export interface ShownReceipt {
  readonly receipt: Receipt;
  readonly json: Fields;
}

/** Receipts by hash, in the order asked; null where the node knows none. Each stands in its block as the block says. */
export async function fetchReceipts(rpc: RpcTransport, hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]> {
  const receipts = (await fetchByHash(rpc, hashes)).map((shown) => shown?.receipt ?? null);
  const named = [...new Set(receipts.flatMap((receipt) => receipt?.blockHash ?? []))];
  const blocks = await fetchBlocks(rpc, named);
  for (const receipt of receipts.filter((each) => each !== null)) {
    const block = blocks[named.indexOf(receipt.blockHash)] ?? null;
    if (block === null) throw new BadAnswer("it has a receipt of a block that it does not have");
    if (!standsIn(block, receipt)) throw new BadAnswer("a receipt of it contradicts its block");
  }
  return receipts;
}

async function fetchByHash(rpc: RpcTransport, hashes: readonly Hash[]): Promise<readonly (ShownReceipt | null)[]> {
  const replies = await rpc.batch(hashes.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })));
  return replies.map((reply, index) => {
    const shown = readShown(resultOf(reply));
    if (shown !== null && shown.receipt.txHash !== hashes[index]) {
      throw new BadAnswer("it answered with another receipt");
    }
    return shown;
  });
}

/** As far as a row counts. */
const LAST_PLACE = 2 ** 31 - 1;

/**
 * A number that the block does not bear out would be counted from, withdrawn by, or never reached. Nothing is decided by
 * the place, which chains with transactions of a second kind count in their own way.
 */
export function standsIn({ hash, number, transactionHashes }: Block, receipt: Receipt): boolean {
  const { blockHash, blockNumber, transactionIndex, txHash } = receipt;
  if (blockHash !== hash || blockNumber !== number || transactionIndex > LAST_PLACE) return false;
  return transactionHashes[transactionIndex] === txHash || transactionHashes.includes(txHash);
}

/** Up to this share of a block's transactions, asking for each moves fewer bytes than all receipts of the block. */
const FEW = 2 / 3;
/** And never more than so many: bytes are cheap where each call counts against a rate, or goes alone for want of batches. */
const FEW_CALLS = 10;

/** The receipts of one block among `hashes`. In each of the three ways to find them, each stands in that very block. */
export async function fetchShownInBlock(
  endpoint: Endpoint,
  block: Block,
  hashes: readonly Hash[],
): Promise<readonly ShownReceipt[]> {
  const asked = new Set(hashes);
  const wanted = block.transactionHashes.filter((hash) => asked.has(hash));
  if (wanted.length === 0) return [];
  const areFew = wanted.length <= Math.min(FEW_CALLS, FEW * block.transactionHashes.length);
  if (areFew && endpoint.blockReceipts !== "unsupported") {
    const found = await fetchIndexed(endpoint.rpc, wanted);
    if (areOf(block, found)) return found;
  }
  const all = await fetchBlockReceipts(endpoint, block.hash);
  if (all === "gone") return [];
  if (typeof all !== "string" && isListOf(block, all)) {
    const found = all.filter((receipt) => asked.has(hashIn(receipt))).map(readShown);
    if (areOf(block, found)) return found;
  }
  const found = (await fetchByHash(endpoint.rpc, wanted)).filter((shown) => shown?.receipt.blockHash === block.hash);
  if (!areOf(block, found)) throw new BadAnswer("a receipt of it contradicts its block");
  return found;
}

/**
 * Of a block that is known by its hash alone, without asking for the block first: one question instead of two. Also what
 * stands in another block; and what a node's index has not come to yet is missing.
 */
export async function fetchShownAtOnce(endpoint: Endpoint, blockHash: Hash, hashes: readonly Hash[]) {
  const list = hashes.length > FEW_CALLS ? await fetchBlockReceipts(endpoint, blockHash) : "unsupported";
  if (typeof list === "string") return (await fetchIndexed(endpoint.rpc, hashes)).filter((shown) => shown !== null);
  const asked = new Set(hashes);
  return list.flatMap((each) => (each !== null && asked.has(hashIn(each)) ? (readShown(each) ?? []) : []));
}

function areOf(block: Block, receipts: readonly (ShownReceipt | null)[]): receipts is readonly ShownReceipt[] {
  return receipts.every((shown) => shown !== null && standsIn(block, shown.receipt));
}

/** One for each of the block's own transactions: what is told twice stands where something else is missing. */
function isListOf({ transactionHashes }: Block, list: readonly unknown[]): boolean {
  if (list.length !== transactionHashes.length || list.includes(null)) return false;
  const listed = new Set(list.map(hashIn));
  return transactionHashes.every((hash) => listed.has(hash));
}

/** Where a node's index of transactions lags behind its blocks, or fails, what it says is worth another question. */
async function fetchIndexed(rpc: RpcTransport, hashes: readonly Hash[]): Promise<readonly (ShownReceipt | null)[]> {
  try {
    return await fetchByHash(rpc, hashes);
  } catch (error) {
    if (error instanceof RpcErrorAnswer) return [null];
    throw error;
  }
}

/** Of what was not asked for, no more is read. */
function hashIn(receipt: unknown): Hash {
  return read.hash(read.record(receipt, "the receipt").transactionHash, "receipt.transactionHash");
}

/** `eth_getBlockReceipts` in the form this node takes, remembered from the first time. */
export async function fetchBlockReceipts(
  endpoint: Endpoint,
  hash: Hash,
): Promise<readonly unknown[] | "gone" | "withheld" | "unsupported"> {
  while (endpoint.blockReceipts !== "unsupported") {
    const parameter = endpoint.blockReceipts === "byHash" ? hash : { blockHash: hash };
    try {
      const result = await endpoint.rpc.request("eth_getBlockReceipts", [parameter]);
      return result === null ? "gone" : read.array(result, "the block's receipts");
    } catch (error) {
      // Reth and Besu tell an orphaned block by an error, geth by null.
      if (saysNoSuchBlock(error)) return "gone";
      const lacksMethod = saysMethodUnsupported(error);
      if (!lacksMethod && !refusesParameter(error)) {
        if (withholds(error)) return "withheld";
        throw error;
      }
      endpoint.blockReceipts = lacksMethod || endpoint.blockReceipts === "byObject" ? "unsupported" : "byObject";
    }
  }
  return "unsupported";
}

const refusesParameter = saying([-32602]);

/** Null also where the receipt names no block: some rollups give one for a transaction that is only pre-confirmed. */
function readShown(value: unknown): ShownReceipt | null {
  if (value === null) return null;
  const json = read.record(value, "the receipt");
  return json.blockHash === null || json.blockNumber === null ? null : { receipt: readReceipt(json), json };
}

export function readReceipt(receipt: Fields): Receipt {
  return {
    txHash: read.hash(receipt.transactionHash, "receipt.transactionHash"),
    blockNumber: read.number(receipt.blockNumber, "receipt.blockNumber"),
    blockHash: read.hash(receipt.blockHash, "receipt.blockHash"),
    transactionIndex: read.number(receipt.transactionIndex, "receipt.transactionIndex"),
    status: readStatus(receipt.status),
    gasUsed: read.gas(receipt.gasUsed, "receipt.gasUsed"),
    effectiveGasPrice: read.optional(read.bigint, receipt.effectiveGasPrice, "receipt.effectiveGasPrice"),
    contractAddress: read.optional(read.address, receipt.contractAddress, "receipt.contractAddress"),
    ...readBeside(receipt),
  };
}

/** More than every wei that there is: what nobody can have paid is not added up. */
const MOST_WEI = 2n ** 128n;

/** EIP-4844's two fields, and the one of OP Stack's rollups. */
function readBeside(receipt: Fields): Pick<Receipt, "besideGas" | "besideGasUnsure"> {
  const optional = (name: "blobGasUsed" | "blobGasPrice" | "l1Fee") =>
    read.optional(read.bigint, receipt[name], `receipt.${name}`);
  const [blobGas, blobPrice, forData] = [optional("blobGasUsed") ?? 0n, optional("blobGasPrice"), optional("l1Fee")];
  const besideGas = blobGas * (blobPrice ?? 0n) + (forData ?? 0n);
  if (besideGas > MOST_WEI) return { besideGas: 0n, besideGasUnsure: true };
  if (blobGas > 0n && blobPrice === null) return { besideGas, besideGasUnsure: true };
  return besideGas === 0n ? {} : { besideGas };
}

function readStatus(value: unknown): Receipt["status"] {
  const status = read.number(value, "receipt.status");
  if (status > 1) throw new BadAnswer("receipt.status is neither 0 nor 1");
  return status === 1 ? "success" : "reverted";
}
