import type { Address, Hash, Hex } from "../../../src/domain/lane.ts";
import type { Fees } from "../../../src/domain/transaction/fees.ts";
import type { AccessListEntry, UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";
import type { SimulatedBlock } from "./block.ts";
import type { SimulatedChain } from "./core.ts";
import { decodeRevert } from "./revert.ts";
import { formatBlock, formatReceiptAt, formatReceipts, formatTransaction, type Json, quantity } from "./rpc-format.ts";
import { type CallOutcome, type PricedCall, simulateCall } from "./simulation.ts";
import type { ChainView } from "./view.ts";

export class RpcError extends Error {
  readonly code: number;
  readonly data: Json | undefined;
  constructor(code: number, message: string, data?: Json) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export type Params = readonly unknown[];
type Method = (params: Params) => Json;

export interface RpcOptions {
  readonly chain: SimulatedChain;
  readonly view: ChainView;
  /** False for a node without eth_getBlockReceipts. */
  readonly blockReceipts: boolean;
}

/** geth's JSON-RPC methods, as far as a sender of transactions needs them. */
export function createRpc(options: RpcOptions): (method: string, params: Params) => Json {
  const methods = new Map<string, Method>(
    Object.entries({
      ...nodeMethods(options),
      ...blockMethods(options),
      ...accountMethods(options),
      ...callMethods(options),
    }),
  );
  if (!options.blockReceipts) methods.delete("eth_getBlockReceipts");
  return (name, params) => {
    const method = methods.get(name);
    if (method === undefined) throw new RpcError(-32601, `the method ${name} does not exist/is not available`);
    return method(params);
  };
}

function nodeMethods({ chain, view }: RpcOptions): Record<string, Method> {
  return {
    eth_chainId: () => quantity(chain.chainId),
    net_version: () => String(chain.chainId),
    web3_clientVersion: () => "Geth/v1.16.0-simulated/linux-amd64/go1.24",
    eth_syncing: () => false,
    eth_blockNumber: () => quantity(view.head.number),
    eth_gasPrice: () => quantity(view.gasPrice()),
    eth_maxPriorityFeePerGas: () => quantity(view.suggestedTip()),
    eth_feeHistory: ([count, newest, percentiles]) =>
      feeHistory({ chain, view }, { count: Number(count), newest, percentiles: toPercentiles(percentiles) }),
  };
}

function blockMethods({ chain, view }: RpcOptions): Record<string, Method> {
  const canonicalPlace = (hash: unknown) => {
    const place = chain.blocks.placeOf(String(hash).toLowerCase() as Hash);
    return place === null || place.block.number > view.head.number ? null : place;
  };
  return {
    eth_getBlockByNumber: ([tag, full]) => {
      const block = findBlock(view, tag);
      if (block === null && (tag === "safe" || tag === "finalized"))
        throw new RpcError(-32000, `${tag} block not found`);
      return block === null ? null : formatBlock(block, full === true);
    },
    eth_getBlockByHash: ([hash, full]) => {
      const block = view.byHash(String(hash).toLowerCase() as Hash);
      return block === null ? null : formatBlock(block, full === true);
    },
    eth_getBlockReceipts: ([tag]) => {
      const block = findBlock(view, tag);
      return block === null ? null : formatReceipts(block);
    },
    eth_getTransactionReceipt: ([hash]) => {
      const place = canonicalPlace(hash);
      return place === null ? null : formatReceiptAt(place);
    },
    eth_getTransactionByHash: ([hash]) => {
      const place = canonicalPlace(hash);
      const transaction = chain.transaction(String(hash).toLowerCase() as Hash);
      const hidden = place === null && chain.blocks.placeOf(String(hash).toLowerCase() as Hash) !== null;
      return transaction === null || hidden ? null : formatTransaction(transaction, place);
    },
  };
}

function accountMethods({ chain, view }: RpcOptions): Record<string, Method> {
  return {
    eth_getTransactionCount: ([address, tag]) => {
      const account = toAddress(address);
      if (tag === "pending" || tag === "latest" || tag === undefined) {
        return quantity(view.transactionCount(account, tag === "pending" ? "pending" : "latest"));
      }
      const count = view.transactionCountAt(account, mustFindBlock(view, tag).number);
      if (count === null) throw new RpcError(-32000, "missing trie node 0ab1… (path ) state 0x0ab1… is not available");
      return quantity(count);
    },
    eth_getBalance: ([address, tag]) =>
      quantity(view.account(toAddress(address), mustFindBlock(view, tag ?? "latest").number).balance),
    eth_getCode: ([address]) => (chain.hasCode(toAddress(address)) ? "0xfe" : "0x"),
    txpool_contentFrom: ([address]) => ({ pending: pooledOf(chain, toAddress(address)), queued: {} }),
    eth_getTransactionBySenderAndNonce: ([address, nonce]) => {
      if (!view.looksUpByNonce) {
        throw new RpcError(-32601, "the method eth_getTransactionBySenderAndNonce does not exist/is not available");
      }
      const found = view.bySenderAndNonce(toAddress(address), Number(nonce));
      return found === null ? null : formatTransaction(found, view.placeOf(found.hash));
    },
    eth_sendTransaction: ([fields]) => {
      const { from, unsigned } = toUnsigned(chain.chainId, fields);
      const submission = chain.sendUnsigned(from, unsigned);
      if (!submission.accepted) throw new RpcError(-32000, submission.refusal.message);
      return submission.hash;
    },
    eth_sendRawTransaction: ([raw]) => {
      if (typeof raw !== "string" || !/^0x([0-9a-f]{2})*$/i.test(raw)) {
        throw new RpcError(-32602, "invalid argument 0: json: cannot unmarshal hex string without 0x prefix");
      }
      const submission = chain.submit(raw.toLowerCase() as Hex);
      if (!submission.accepted) throw new RpcError(-32000, submission.refusal.message);
      return submission.hash;
    },
  };
}

/** The executable transactions of an account by nonce. As in geth, the nonces are decimal. */
function pooledOf(chain: SimulatedChain, address: Address): Json {
  const found: Record<string, Json> = {};
  for (let nonce = chain.account(address).nonce; nonce < chain.pendingNonce(address); nonce++) {
    const entry = chain.pool.entry(address, nonce);
    if (entry !== null) found[String(nonce)] = { hash: entry.transaction.hash, nonce: quantity(nonce) };
  }
  return found;
}

function callMethods({ chain, view }: RpcOptions): Record<string, Method> {
  return {
    eth_estimateGas: ([call]) => quantity(gasOrThrow(simulateCall(chain, view, toCall(call)))),
    eth_call: ([call]) => {
      const wished = toCall(call);
      // geth limits a call by its own gas cap and ignores the block's limit.
      const gas = wished.gas === undefined || wished.gas > chain.gasLimit ? chain.gasLimit : wished.gas;
      const result = simulateCall(chain, view, { ...wished, gas });
      if (result.outcome === "gasTooLow" || result.outcome === "insufficientFunds") {
        throw new RpcError(-32000, `err: ${result.detail} (supplied gas ${gas})`);
      }
      gasOrThrow(result);
      return "0x";
    },
  };
}

function gasOrThrow(result: CallOutcome): bigint {
  if (result.outcome === "ok") return result.gas;
  if (result.outcome !== "revert") throw new RpcError(-32000, result.detail);
  const { message } = decodeRevert(result.data);
  throw new RpcError(3, message === null ? "execution reverted" : `execution reverted: ${message}`, result.data);
}

interface FeeHistoryQuery {
  readonly count: number;
  readonly newest: unknown;
  readonly percentiles: readonly number[];
}

function feeHistory({ chain, view }: Pick<RpcOptions, "chain" | "view">, query: FeeHistoryQuery): Json {
  const newest = mustFindBlock(view, query.newest).number;
  const oldest = Math.max(0, newest - Math.min(query.count, 1_024) + 1);
  const blocks = Array.from({ length: newest - oldest + 1 }, (_, i) => mustFindBlock(view, quantity(oldest + i)));
  const next = view.byNumber(newest + 1)?.baseFeePerGas ?? chain.nextBaseFee;
  return {
    oldestBlock: quantity(oldest),
    baseFeePerGas: [...blocks.map((block) => block.baseFeePerGas), next].map((fee) => quantity(fee ?? 0n)),
    gasUsedRatio: blocks.map((block) => Number(block.gasUsed) / Number(block.gasLimit)),
    reward: blocks.map((block) => query.percentiles.map((percent) => quantity(view.tipAt(block, percent) ?? 0n))),
  };
}

function toPercentiles(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : [];
}

function findBlock(view: ChainView, tag: unknown): SimulatedBlock | null {
  if (tag === "latest" || tag === "pending") return view.head;
  if (tag === "safe" || tag === "finalized") return view.tagged(tag);
  if (tag === "earliest") return view.byNumber(0);
  if (typeof tag === "object" && tag !== null) {
    return "blockHash" in tag
      ? findBlock(view, tag.blockHash)
      : findBlock(view, "blockNumber" in tag ? tag.blockNumber : null);
  }
  if (typeof tag !== "string" || !/^0x[0-9a-f]+$/i.test(tag)) {
    throw new RpcError(-32602, "invalid argument 0: hex string without 0x prefix");
  }
  return tag.length === 66 ? view.byHash(tag.toLowerCase() as Hash) : view.byNumber(Number(tag));
}

function mustFindBlock(view: ChainView, tag: unknown): SimulatedBlock {
  const block = findBlock(view, tag);
  if (block === null) throw new RpcError(-32000, "header not found");
  return block;
}

function toAddress(value: unknown): Address {
  if (typeof value !== "string" || !/^0x[0-9a-f]{40}$/i.test(value)) {
    throw new RpcError(-32602, "invalid argument 0: hex string has length, want 40 for common.Address");
  }
  return value.toLowerCase() as Address;
}

function toCall(value: unknown): PricedCall {
  if (typeof value !== "object" || value === null) throw new RpcError(-32602, "missing value for required argument 0");
  const call = value as Record<string, unknown>;
  const fee = call.maxFeePerGas ?? call.gasPrice;
  return {
    from: toAddress(call.from ?? `0x${"0".repeat(40)}`),
    to: call.to === undefined || call.to === null ? null : toAddress(call.to),
    data: String(call.input ?? call.data ?? "0x") as Hex,
    value: toBigInt(call.value) ?? 0n,
    accessList: (call.accessList ?? []) as readonly AccessListEntry[],
    ...(call.gas === undefined ? {} : { gas: toBigInt(call.gas) ?? 0n }),
    ...(fee === undefined ? {} : { maxFeePerGas: toBigInt(fee) ?? 0n }),
  };
}

/** Parses a transaction that the node is to sign itself. Throws if gas, nonce or price is missing. */
function toUnsigned(
  chainId: number,
  value: unknown,
): { readonly from: Address; readonly unsigned: UnsignedTransaction } {
  const call = toCall(value);
  const fields = value as Record<string, unknown>;
  const [gasPrice, maxFeePerGas] = [toBigInt(fields.gasPrice), toBigInt(fields.maxFeePerGas)];
  if (call.gas === undefined || fields.nonce === undefined || (gasPrice ?? maxFeePerGas) === null) {
    throw new RpcError(-32000, "gas, nonce and price are not filled in here");
  }
  const { accessList = [] } = call;
  const tip = toBigInt(fields.maxPriorityFeePerGas) ?? 0n;
  const fees: Fees =
    maxFeePerGas === null
      ? { type: accessList.length > 0 ? "eip2930" : "legacy", gasPrice: gasPrice ?? 0n }
      : { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: tip };
  const { from, to, data, value: wei, gas } = call;
  return { from, unsigned: { chainId, nonce: Number(fields.nonce), to, data, value: wei, gas, fees, accessList } };
}

function toBigInt(value: unknown): bigint | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string" || !/^0x[0-9a-f]+$/i.test(value))
    throw new RpcError(-32602, "invalid argument 0: invalid hex quantity");
  return BigInt(value);
}
