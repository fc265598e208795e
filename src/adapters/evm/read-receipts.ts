import type { Hash } from "../../domain/lane.ts";
import type { Receipt } from "../../domain/transaction.ts";
import type { Block } from "../../ports/chain.ts";
import { saysNoSuchBlock } from "./read-block.ts";
import type { Endpoint } from "./rpc/endpoints.ts";
import { RpcErrorAnswer, resultOf, saysMethodUnsupported } from "./rpc/errors.ts";
import { BadAnswer, readAddress, readArray, readBigInt, readHash, readNumber, readRecord } from "./rpc/quantities.ts";
import type { RpcTransport } from "./rpc/transport.ts";

/** Receipts by hash, in the order asked; null where the node knows none. */
export async function fetchReceipts(rpc: RpcTransport, hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]> {
  const replies = await rpc.batch(hashes.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })));
  return replies.map((reply, index) => {
    const receipt = readReceipt(resultOf(reply));
    if (receipt !== null && receipt.txHash !== hashes[index]) throw new BadAnswer("it answered with another receipt");
    return receipt;
  });
}

/** Up to this share of a block's transactions, asking for each moves fewer bytes than all receipts of the block. */
const FEW = 2 / 3;
/** And never more than so many: bytes are cheap where each call counts against a rate, or goes alone for want of batches. */
const FEW_CALLS = 10;

/** The receipts of one block among `hashes`. Whatever way they were found, each names that very block. */
export async function fetchReceiptsInBlock(
  endpoint: Endpoint,
  block: Block,
  hashes: readonly Hash[],
): Promise<readonly Receipt[]> {
  const asked = new Set(hashes);
  const wanted = block.transactionHashes.filter((hash) => asked.has(hash));
  if (wanted.length === 0) return [];
  const isOfBlock = (receipt: Receipt | null): receipt is Receipt => receipt?.blockHash === block.hash;
  const areFew = wanted.length <= Math.min(FEW_CALLS, FEW * block.transactionHashes.length);
  if (areFew && endpoint.blockReceipts !== "unsupported") {
    const found = (await fetchIndexed(endpoint.rpc, wanted)).filter(isOfBlock);
    if (found.length === wanted.length) return found;
  }
  const all = await fetchBlockReceipts(endpoint, block.hash);
  const found =
    all === "unsupported"
      ? await fetchReceipts(endpoint.rpc, wanted)
      : all.filter((receipt) => isOf(asked, receipt)).map(readReceipt);
  return found.filter(isOfBlock);
}

/** Where a node's index of transactions lags behind its blocks, or fails, what it says is worth another question. */
async function fetchIndexed(rpc: RpcTransport, hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]> {
  try {
    return await fetchReceipts(rpc, hashes);
  } catch (error) {
    if (error instanceof RpcErrorAnswer) return [];
    throw error;
  }
}

/** Only what was asked for is read. */
function isOf(asked: ReadonlySet<Hash>, value: unknown): boolean {
  if (value === null) return false;
  return asked.has(readHash(readRecord(value, "the receipt").transactionHash, "receipt.transactionHash"));
}

/** `eth_getBlockReceipts` in the form this node takes, remembered from the first time. */
async function fetchBlockReceipts(endpoint: Endpoint, hash: Hash): Promise<readonly unknown[] | "unsupported"> {
  while (endpoint.blockReceipts !== "unsupported") {
    const parameter = endpoint.blockReceipts === "byHash" ? hash : { blockHash: hash };
    try {
      const result = await endpoint.rpc.request("eth_getBlockReceipts", [parameter]);
      return result === null ? [] : readArray(result, "the block's receipts");
    } catch (error) {
      // Reth and Besu tell an orphaned block by an error, geth by null.
      if (saysNoSuchBlock(error)) return [];
      if (!rejectsForm(error)) throw error;
      endpoint.blockReceipts =
        saysMethodUnsupported(error) || endpoint.blockReceipts === "byObject" ? "unsupported" : "byObject";
    }
  }
  return "unsupported";
}

function rejectsForm(error: unknown): boolean {
  return saysMethodUnsupported(error) || (error instanceof RpcErrorAnswer && error.code === -32602);
}

/** Null also where the receipt names no block: some rollups give one for a transaction that is only pre-confirmed. */
function readReceipt(value: unknown): Receipt | null {
  if (value === null) return null;
  const receipt = readRecord(value, "the receipt");
  if (receipt.blockHash === null || receipt.blockNumber === null) return null;
  const { effectiveGasPrice, contractAddress } = receipt;
  return {
    txHash: readHash(receipt.transactionHash, "receipt.transactionHash"),
    blockNumber: readNumber(receipt.blockNumber, "receipt.blockNumber"),
    blockHash: readHash(receipt.blockHash, "receipt.blockHash"),
    transactionIndex: readNumber(receipt.transactionIndex, "receipt.transactionIndex"),
    status: readStatus(receipt.status),
    gasUsed: readBigInt(receipt.gasUsed, "receipt.gasUsed"),
    effectiveGasPrice: isAbsent(effectiveGasPrice) ? null : readBigInt(effectiveGasPrice, "receipt.effectiveGasPrice"),
    contractAddress: isAbsent(contractAddress) ? null : readAddress(contractAddress, "receipt.contractAddress"),
  };
}

function readStatus(value: unknown): Receipt["status"] {
  const status = readNumber(value, "receipt.status");
  if (status > 1) throw new BadAnswer("receipt.status is neither 0 nor 1");
  return status === 1 ? "success" : "reverted";
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
