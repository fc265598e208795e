import type { Hash } from "../../../domain/lane.ts";
import type { Receipt } from "../../../domain/transaction/transaction.ts";
import type { Block } from "../../../ports/chain.ts";
import type { Endpoint } from "../rpc/endpoints.ts";
import { fetchBlocks, saysNoSuchBlock } from "../rpc/read-block.ts";
import {
  BadAnswer,
  type Fields,
  memberReader,
  RpcErrorAnswer,
  read,
  resultOf,
  saying,
  saysMethodUnsupported,
  withholds,
} from "../rpc/rpc-errors.ts";
import type { RpcTransport } from "../rpc/transport.ts";

/** A receipt with the node's JSON. The JSON's logs are compared between endpoints and then dropped. */
export interface ShownReceipt {
  readonly receipt: Receipt;
  readonly json: Fields;
}

/**
 * Fetches receipts by hash, in the order requested; null for a receipt that the node does not have. Each receipt is
 * checked against its block.
 */
export async function fetchReceipts(rpc: RpcTransport, hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]> {
  const receipts = (await fetchByHash(rpc, hashes)).map((shown) => shown?.receipt ?? null);
  const named = [...new Set(receipts.flatMap((receipt) => receipt?.blockHash ?? []))];
  const blocks = await fetchBlocks(rpc, named);
  for (const receipt of receipts.filter((each) => each !== null)) {
    const block = blocks[named.indexOf(receipt.blockHash)] ?? null;
    if (block === null) throw new BadAnswer("it has a receipt of a block that it does not have");
    if (!standsIn(block, receipt)) throw new BadAnswer("its receipt contradicts its block");
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

/** Highest transaction index that the database column can store. */
const LAST_PLACE = 2 ** 31 - 1;

/**
 * True if the block contains the receipt's transaction, and number and hash match. A wrong block number would falsify
 * depths and reorg handling. The transaction's index is not checked, because chains with system transactions count it
 * differently.
 */
export function standsIn({ hash, number, transactionHashes }: Block, receipt: Receipt): boolean {
  const { blockHash, blockNumber, transactionIndex, txHash } = receipt;
  if (blockHash !== hash || blockNumber !== number || transactionIndex > LAST_PLACE) return false;
  return transactionHashes[transactionIndex] === txHash || transactionHashes.includes(txHash);
}

/**
 * Largest share of a block's transactions for which single receipts are fetched instead of all receipts of the block,
 * to save bytes.
 */
const FEW = 2 / 3;
/**
 * Largest number of receipts that are fetched singly if the node can return all receipts of a block: calls count
 * against rate limits, and some endpoints accept no batches.
 */
const FEW_CALLS = 10;

/**
 * Fetches those receipts of one block whose hashes are in `hashes`, in one of three ways. Every receipt is checked
 * against the block.
 */
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
  if (!areOf(block, found)) throw new BadAnswer("its receipt contradicts its block");
  return found;
}

/**
 * Fetches receipts without fetching their block first, which saves one round trip: a few by transaction hash, more by
 * block hash. The list may contain receipts of other blocks, and may lack receipts that the node has not indexed yet.
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

/**
 * True if the list has exactly one receipt for each transaction of the block. Without this check, a receipt listed
 * twice would hide a missing one.
 */
function isListOf({ transactionHashes }: Block, list: readonly unknown[]) {
  if (list.length !== transactionHashes.length || list.includes(null)) return false;
  const listed = new Set(list.map(hashIn));
  return transactionHashes.every((hash) => listed.has(hash));
}

/**
 * Fetches receipts by transaction hash. If the node's transaction index lags behind its blocks or fails, they count as
 * missing and are fetched in another way.
 */
async function fetchIndexed(rpc: RpcTransport, hashes: readonly Hash[]): Promise<readonly (ShownReceipt | null)[]> {
  try {
    return await fetchByHash(rpc, hashes);
  } catch (error) {
    if (error instanceof RpcErrorAnswer) return [null];
    throw error;
  }
}

/** Reads only the transaction hash of a receipt: receipts that were not requested are not validated. */
function hashIn(receipt: unknown) {
  return read.hash(read.record(receipt, "the receipt").transactionHash, "receipt.transactionHash");
}

/** Calls `eth_getBlockReceipts` in the parameter form that this node accepts, and remembers the form. */
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
      // For an orphaned block, Reth and Besu return an error, geth returns null.
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

/**
 * Parses a receipt. Null also for a receipt without a block: some rollups return one for a pre-confirmed transaction.
 */
function readShown(value: unknown): ShownReceipt | null {
  if (value === null) return null;
  const json = read.record(value, "the receipt");
  return json.blockHash === null || json.blockNumber === null ? null : { receipt: readReceipt(json), json };
}

export function readReceipt(receipt: Fields): Receipt {
  const member = memberReader(receipt, "receipt");
  return {
    txHash: member(read.hash, "transactionHash"),
    blockNumber: member(read.number, "blockNumber"),
    blockHash: member(read.hash, "blockHash"),
    transactionIndex: member(read.number, "transactionIndex"),
    status: member(readStatus, "status"),
    gasUsed: member(read.gas, "gasUsed"),
    effectiveGasPrice: member(read.optional(read.bigint), "effectiveGasPrice"),
    contractAddress: member(read.optional(read.address), "contractAddress"),
    ...readBeside(receipt),
  };
}

/** Upper limit of a cost in wei. It exceeds the total supply, so a higher cost is false and is not added. */
const MOST_WEI = 2n ** 128n;

/** Reads costs besides gas: the blob fields of EIP-4844, and `l1Fee` of OP Stack rollups. */
function readBeside(receipt: Fields): Pick<Receipt, "besideGas" | "besideGasUnsure"> {
  const member = memberReader(receipt, "receipt");
  const names = ["blobGasUsed", "blobGasPrice", "l1Fee"];
  const [used, blobPrice = null, forData] = names.map((name) => member(read.optional(read.bigint), name));
  const blobGas = used ?? 0n;
  const besideGas = blobGas * (blobPrice ?? 0n) + (forData ?? 0n);
  if (besideGas > MOST_WEI) return { besideGas: 0n, besideGasUnsure: true };
  if (blobGas > 0n && blobPrice === null) return { besideGas, besideGasUnsure: true };
  return besideGas === 0n ? {} : { besideGas };
}

function readStatus(value: unknown, what: string) {
  const status = read.number(value, what);
  if (status > 1) throw new BadAnswer(`${what} is neither 0 nor 1`);
  return status === 1 ? "success" : "reverted";
}
