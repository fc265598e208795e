import type { NotStarted, SubmitResult } from "../domain/chain/answers.ts";
import type { BlockRef } from "../domain/chain/block-window.ts";
import type { CountAnswer } from "../domain/chain/counts.ts";
import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { FeeMarket, Fees } from "../domain/transaction/fees.ts";
import type { Payload, Receipt, UnsignedTransaction } from "../domain/transaction/transaction.ts";

export interface Block extends BlockRef {
  readonly transactionHashes: readonly Hash[];
  readonly baseFeePerGas: bigint | null;
  readonly gasLimit: bigint;
  /**
   * True if the hash computed from the block's header equals the block's hash. False if an endpoint changed the header,
   * or if this chain computes hashes differently. Absent: not checked.
   */
  readonly headerHolds?: boolean;
}

/** Height and hash of a block. */
export type BlockPlace = Pick<BlockRef, "number" | "hash">;

/** A transaction as the chain reports it. */
export interface ChainTransaction extends Omit<UnsignedTransaction, "chainId" | "accessList"> {
  readonly txHash: Hash;
  readonly from: Address;
  /** Fees of the transaction. Blob and delegation transactions have only their EIP-1559 fees here. */
  readonly fees: Fees;
  /** The block that contains the transaction, according to the endpoint; null if it is in the mempool. */
  readonly block: BlockPlace | null;
}

/** Contents of a transaction (receiver, value, data), whether Fencepost or another program sent it. */
export type SentContents = Pick<ChainTransaction, "to" | "value" | "data">;

/** Chain id and genesis hash that an endpoint reports. */
export interface ChainIdentity {
  readonly chainId: number;
  /** Hash of the genesis block; null if the endpoint does not keep that block. */
  readonly genesisHash: Hash | null;
}

/** Response of one endpoint. "silent": the endpoint counted as up, but did not respond this time. */
export type EndpointAnswer<T> = { readonly kind: "says"; readonly answer: T } | { readonly kind: "silent" };

/** Result of sending a payload that the RPC node signs itself. */
export interface NodeSubmission extends SubmitResult {
  /** Hash of the transaction; null if the response was lost. */
  readonly txHash: Hash | null;
}

/** Result of simulating a call. The simulation throws `ChainUnavailable` if no endpoint gives a result. */
export type Simulation =
  /**
   * The call succeeds. `balance`: the sender's balance, read in the same JSON-RPC batch. `hasCode`: true if the
   * receiver has code; absent if this was not requested or could not be read.
   */
  | { readonly outcome: "ok"; readonly gas: bigint; readonly balance: bigint; readonly hasCode?: boolean }
  | { readonly outcome: "revert"; readonly revert: Revert }
  | { readonly outcome: "insufficientFunds"; readonly detail: string }
  | { readonly outcome: "gasTooLow"; readonly detail: string }
  | { readonly outcome: "gasOverBlock"; readonly detail: string };

/**
 * All facts that one endpoint reports about a call. The newest block (`head`) was read first, so the other facts are
 * from that block or a later one.
 */
export interface Prospect {
  readonly head: Block;
  readonly market: FeeMarket;
  readonly simulation: Simulation;
}

/** Result of comparing the blocks that the endpoints show at one height. */
export type SecondOpinion =
  /** There is no comparison, because fewer than two endpoints are up. */
  | { readonly kind: "none" }
  /** Two endpoints show this same block. */
  | { readonly kind: "agreed"; readonly hash: Hash }
  /** There is no comparison yet, because fewer than two endpoints have reached the height. */
  | { readonly kind: "behind" }
  | { readonly kind: "disagree"; readonly answers: readonly string[] };

/** A transaction whose outcome is about to be decided by its receipt. */
export interface Settling {
  readonly txHash: Hash;
  /**
   * Expected signer and nonce of the transaction. Set if its hash came from an endpoint or a caller, and Fencepost did
   * not sign it.
   */
  readonly sentBy?: { readonly signer: Address; readonly nonce: number };
}

/** Result of verifying a receipt that one endpoint reported. */
export type ReceiptVerdict =
  /**
   * The receipt is verified: two endpoints return it; or only one endpoint is up, and the hash of the block proves it.
   */
  | {
      readonly kind: "agreed";
      readonly receipt: Receipt;
      /** The contents of the transaction, verified like the receipt. Set if `sentBy` was given. */
      readonly sent?: SentContents;
    }
  /** Verified like a receipt: the block does not contain this transaction, or the transaction has another sender. */
  | { readonly kind: "absent"; readonly detail: string }
  /** Only one endpoint is up, and block hashes of this chain cannot be recomputed, so its receipt is not verified. */
  | { readonly kind: "unproven" }
  /** Too few of the endpoints that are up have the block, the blocks required above it, and the block's receipts. */
  | { readonly kind: "behind"; readonly detail: string }
  /** Two endpoints show another block at that height: there was a reorg that this node has not noticed yet. */
  | { readonly kind: "moved" }
  /** Two endpoints contradict each other, or one contradicts itself. Each text in `answers` names its endpoint. */
  | { readonly kind: "disagree"; readonly answers: readonly string[] };

/** State of one endpoint, from its last responses. */
export interface EndpointHealth {
  /** Scheme and host of the endpoint only: the path may contain a key. */
  readonly url: string;
  /** State of the endpoint; "unknown": it has not been called yet. */
  readonly status: EndpointState | "unknown";
  /**
   * Number of blocks by which the endpoint lags behind the highest one, at the last comparison; null if none was made.
   */
  readonly behind: number | null;
}

/** Transaction count of an address at one endpoint. */
export interface Counted {
  readonly count: number;
  readonly endpoint: string;
}

export type BlockTag = "latest" | "safe" | "finalized";

/**
 * Returns true if bytes may be sent now. It is called synchronously, in the same event-loop tick in which a connected
 * socket gets the bytes, and again for each endpoint and each retry. So a kill takes effect even if the send waited
 * long for a slot, a connection or a chain check. A send that has begun is never aborted.
 */
export type MayLeave = () => boolean;

/**
 * Signed bytes with their own check of the permission to send. It is separate for each item, because bytes of several
 * lanes share one request.
 */
export interface Send {
  readonly raw: Hex;
  readonly mayLeave: MayLeave;
}

export interface SubmitOptions {
  readonly everywhere?: boolean;
  /** True: send to private endpoints only. Absent: to any endpoint that accepts sends. */
  readonly privately?: boolean;
}

/**
 * One chain behind one or more endpoints. A method returns the response of an endpoint that is up, or throws
 * `ChainUnavailable`. `null` is always the response of a healthy endpoint, never a failed call (invariant I7).
 */
export interface Chain {
  readonly chainId: number;
  /** Number of configured endpoints. With only one, responses cannot be compared. */
  readonly endpoints: number;
  /**
   * Endpoints with `send: "only"`. If there are any, transactions are sent to these alone, until they may be sent to
   * public endpoints too.
   */
  readonly privateEndpoints: readonly string[];
  /** Last known state of each endpoint, in order of preference; no request is sent. Absent: unknown. */
  health?(): readonly EndpointHealth[];

  /**
   * The newest block, or the block with a tag such as `finalized`, with its transaction hashes; null if no endpoint
   * shows the tag. For the newest block, the report of one endpoint is enough. For a tagged block, two endpoints must
   * have reached it, among those that are up and have ever shown the tag; if there is only one such endpoint, its
   * report is enough.
   */
  head(tag: BlockTag): Promise<Block | null>;
  /** Highest block, up to `upTo`, that two endpoints have reached. If only one endpoint is up, its report is enough. */
  heightReached(upTo: number): Promise<number>;
  /** Canonical blocks by number, in the order requested; null for a height that the node does not have. */
  blocksByNumber(numbers: readonly number[]): Promise<readonly (Block | null)[]>;
  blockByHash(hash: Hash): Promise<Block | null>;
  /** Compares the blocks that two endpoints show at this height. */
  secondOpinion(blockNumber: number): Promise<SecondOpinion>;

  /**
   * Receipts of one block, restricted to `hashes`. They are fetched with one call for the whole block, unless only few
   * are wanted or the node lacks that method.
   */
  receiptsInBlock(block: Block, hashes: readonly Hash[]): Promise<readonly Receipt[]>;
  /** Receipts by hash, in the order requested; null if the endpoint has none. */
  receipts(hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]>;

  /**
   * Verifies receipts before they decide an outcome; results are in the order requested. Each endpoint gets one request
   * for all transactions of the block. While two endpoints are up, the response of one is not enough, because it may be
   * false. An endpoint that has fewer than `depth` blocks above the receipts' block counts as behind.
   */
  settleReceipts(
    block: BlockPlace,
    transactions: readonly Settling[],
    depth: number,
  ): Promise<readonly ReceiptVerdict[]>;

  transactionCount(address: Address, tag: "latest" | "pending"): Promise<Counted>;
  /**
   * The mined or pending transaction count from every endpoint that is up, and whether that endpoint has reached
   * `atBlock`. A list with a single element means that only one endpoint is up. Throws `ChainUnavailable` if none
   * responds.
   */
  transactionCountEverywhere(
    address: Address,
    atBlock: number,
    tag?: "latest" | "pending",
  ): Promise<readonly CountAnswer[]>;
  /**
   * Hashes of the transactions in the node's mempool at these nonces; null for a nonce without one. The whole result is
   * null if the node cannot report its mempool.
   */
  pooled(address: Address, nonces: readonly number[]): Promise<readonly (Hash | null)[] | null>;
  /** Mined transaction count at a block; null if the endpoint has pruned that state. */
  transactionCountAt(address: Address, blockNumber: number): Promise<number | null>;
  /** Transactions of this address in a canonical block, in order; null if the endpoint does not have the block. */
  sentInBlock(address: Address, blockNumber: number): Promise<readonly ChainTransaction[] | null>;
  /**
   * Looks a transaction up by sender and nonce, mined or in the mempool, with the node's own method for that. Null: the
   * node has no such transaction. "unsupported": the node has no such method.
   */
  transactionBySenderAndNonce(address: Address, nonce: number): Promise<ChainTransaction | null | "unsupported">;
  /** A transaction by hash, mined or in the mempool; null if the endpoint has none. */
  transaction(hash: Hash): Promise<ChainTransaction | null>;
  balance(address: Address): Promise<bigint>;

  /**
   * Chain id and genesis hash, requested anew each time. If no endpoint of this chain is usable, any other endpoint is
   * requested, even one that serves another chain. `genesisHash`: the known genesis hash, which an endpoint must have
   * to be used again.
   */
  identity(genesisHash: Hash | null): Promise<ChainIdentity>;
  /** Chain id and genesis hash from every endpoint that is up; empty if none serves this chain. */
  identityEverywhere(): Promise<readonly EndpointAnswer<ChainIdentity>[]>;

  /**
   * Current fees of the chain. With two endpoints up, prices come from both. If one of them does not respond soon, fees
   * on which both agreed recently are returned, otherwise those of the other endpoint.
   */
  feeMarket(): Promise<FeeMarket>;
  /** Registers a listener for hints that there is a new block. A hint may be false. Absent: there are no hints. */
  onNewHead?(listener: () => void): void;
  /** Simulates a call: `eth_estimateGas` without `call.gas`, `eth_call` with it. Limits are not checked here. */
  simulate(call: Call): Promise<Simulation>;
  /** Simulates a call at every endpoint that is up, and returns all results. */
  simulateEverywhere(call: Call): Promise<readonly EndpointAnswer<Simulation>[]>;
  /**
   * Simulates a call at every endpoint that is up, and reads the newest block and the fees of each. A refusal of the
   * transaction may depend on all of these facts.
   */
  prospects(call: Call): Promise<readonly EndpointAnswer<Prospect>[]>;

  /**
   * Sends in the order given, as JSON-RPC batches. Never throws because a node refuses or does not respond: without a
   * response, the result is `unknown`. One result per input. `everywhere`: sends to every endpoint that is up.
   * Otherwise the next endpoint is tried only if one does not respond or rejects the transaction for good.
   */
  submit(sends: readonly Send[], options?: SubmitOptions): Promise<readonly (SubmitResult | NotStarted)[]>;
  /**
   * Lets the RPC node sign and send with its own key (`eth_sendTransaction`). Never throws because the node refuses or
   * does not respond. Only one endpoint is called, once: another may not hold the key, or may sign other bytes.
   */
  sendUnsigned(
    from: Address,
    transaction: UnsignedTransaction,
    mayLeave: MayLeave,
    options?: Pick<SubmitOptions, "privately">,
  ): Promise<NodeSubmission | NotStarted>;
  /**
   * Forwards a caller's JSON-RPC request to one endpoint. Another endpoint is tried only if there is no usable
   * response, not after an error or a timeout. It uses separate connections, so that a slow response does not delay the
   * node.
   */
  passOn(method: string, params: unknown): Promise<PassedAnswer>;
  /**
   * Forwards signed bytes of another program like `passOn`, but only to private endpoints if there are any. Nothing is
   * stored. A kill applies to them as well.
   */
  passSigned(raw: Hex, mayLeave: MayLeave): Promise<PassedAnswer | NotStarted>;
  /**
   * Logs and revert reason of a transaction from one endpoint, for display. Null if the endpoint has no receipt of it.
   * Throws `ChainUnavailable`.
   */
  outcome(question: OutcomeQuestion): Promise<ShownOutcome | null>;
  close(): Promise<void>;
}

/** The result or error of the endpoint, unchanged. */
export type PassedAnswer =
  | { readonly kind: "result"; readonly result: unknown }
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data?: unknown };

export class ChainUnavailable extends Error {
  override readonly name: string = "ChainUnavailable";
  /** True if the endpoint is up but rate-limited (429): it will respond again soon and does not count as down. */
  readonly limited: boolean;

  constructor(message: string, { limited = false, ...options }: ErrorOptions & { readonly limited?: boolean } = {}) {
    super(message, options);
    this.limited = limited;
  }
}

/** Returns the chain's response, or `otherwise` if the chain does not respond now. */
export function unlessSilent<T, E>(asking: Promise<T>, otherwise: E): Promise<T | E> {
  return asking.catch((error: unknown) => {
    if (error instanceof ChainUnavailable) return otherwise;
    throw error;
  });
}

/**
 * State of an endpoint. "failing": it does not respond. "behind": it lags behind another endpoint. "foreign": it serves
 * another chain.
 */
export type EndpointState = "up" | "failing" | "behind" | "foreign";

export interface OutcomeQuestion {
  readonly txHash: Hash;
  /** Set if the transaction reverted: the same call, to be simulated on the state before its block. */
  readonly replay: { readonly call: Call; readonly onBlock: number } | null;
}

/**
 * Facts about a mined transaction that Fencepost does not store, as one endpoint shows them. For display only: no
 * decision depends on them.
 */
export interface ShownOutcome {
  readonly blockHash: Hash;
  /** The first logs of the transaction. */
  readonly logs: readonly ShownLog[];
  /** Number of further logs that are not in `logs`. */
  readonly more: number;
  /** Revert reason; null if the repeated call did not revert, or could not be made. */
  readonly revert: Revert | null;
}

export interface ShownLog {
  readonly address: Address;
  readonly topics: readonly Hash[];
  /** The first bytes of the log's data; `dataLength` is the full length. */
  readonly data: Hex;
  readonly dataLength: number;
  /** The decoded event, if the first topic is that of a well-known event and the rest matches its layout. */
  readonly event: KnownEvent | null;
}

export interface KnownEvent {
  readonly name: string;
  /** Arguments of the event: addresses, and numbers as digits. */
  readonly args: readonly { readonly name: string; readonly value: string }[];
}

export interface Call extends Pick<Payload, "to" | "data" | "value" | "gas" | "accessList"> {
  readonly from: Address;
  /** Gas of a transfer to a receiver without code, if known. Then no gas estimate is needed for such a receiver. */
  readonly gasWithoutCode?: bigint;
  /** True: also check if the receiver has code. */
  readonly asksCode?: true;
}

export interface Revert {
  /** Name of the contract's error or panic, if the data shows it. */
  readonly name: string | null;
  /** Decoded revert reason, if there is one. */
  readonly message: string | null;
  readonly data: Hex;
}
