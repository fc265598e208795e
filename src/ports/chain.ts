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
   * True if the header hashes to the block's hash. False if an endpoint changed it, or if this chain hashes
   * differently. Absent: not checked.
   */
  readonly headerHolds?: boolean;
}

/** Height and hash of a block. */
export type BlockPlace = Pick<BlockRef, "number" | "hash">;

/** A transaction as the chain reports it. */
export interface ChainTransaction extends Omit<UnsignedTransaction, "chainId" | "accessList"> {
  readonly txHash: Hash;
  readonly from: Address;
  /** Blob and delegation transactions are shown with their EIP-1559 fees; their other fees are left out. */
  readonly fees: Fees;
  /** The block that contains it, by the endpoint; null if it is in the pool. */
  readonly block: BlockPlace | null;
}

/** Effect of a transaction, ours or another program's. */
export type SentContents = Pick<ChainTransaction, "to" | "value" | "data">;

/** Chain id and genesis hash that an endpoint reports. */
export interface ChainIdentity {
  readonly chainId: number;
  /** Null if the endpoint does not keep the genesis block. */
  readonly genesisHash: Hash | null;
}

/** Answer of one endpoint. "silent": it counts as up and gave no answer this time. */
export type EndpointAnswer<T> = { readonly kind: "says"; readonly answer: T } | { readonly kind: "silent" };

/** Result of a payload that the node signs itself. */
export interface NodeSubmission extends SubmitResult {
  /** Null if the answer was lost. */
  readonly txHash: Hash | null;
}

/** Result of simulating a call. Throws `ChainUnavailable` if there is none. */
export type Simulation =
  /**
   * `balance`: the sender's, from the same batch. `hasCode`: whether the receiver has code; absent if it was not asked
   * or could not be read.
   */
  | { readonly outcome: "ok"; readonly gas: bigint; readonly balance: bigint; readonly hasCode?: boolean }
  | { readonly outcome: "revert"; readonly revert: Revert }
  | { readonly outcome: "insufficientFunds"; readonly detail: string }
  | { readonly outcome: "gasTooLow"; readonly detail: string }
  | { readonly outcome: "gasOverBlock"; readonly detail: string };

/**
 * All facts of one endpoint about a call. The head was read first: the other facts are from that block or a later one.
 */
export interface Prospect {
  readonly head: Block;
  readonly market: FeeMarket;
  readonly simulation: Simulation;
}

/** The blocks that the endpoints show at a height. */
export type SecondOpinion =
  /** Fewer than two endpoints are up. */
  | { readonly kind: "none" }
  /** Two endpoints show this block. */
  | { readonly kind: "agreed"; readonly hash: Hash }
  /** Fewer than two endpoints have reached the height. */
  | { readonly kind: "behind" }
  | { readonly kind: "disagree"; readonly answers: readonly string[] };

/** A transaction whose receipt is about to decide its outcome. */
export interface Settling {
  readonly txHash: Hash;
  /** Expected signer and nonce, if an endpoint or a caller named the hash and nothing was signed here. */
  readonly sentBy?: { readonly signer: Address; readonly nonce: number };
}

/** Result of verifying a receipt that one endpoint reported. */
export type ReceiptVerdict =
  /** Two endpoints give this receipt; or only one is up, and the hash of the block proves it. */
  | {
      readonly kind: "agreed";
      readonly receipt: Receipt;
      /** The contents of the transaction, verified in the same way, if `sentBy` was given. */
      readonly sent?: SentContents;
    }
  /** Verified in the same way: the block does not contain this transaction, or it has another sender. */
  | { readonly kind: "absent"; readonly detail: string }
  /** Only one endpoint is up, and blocks of this chain cannot be recomputed: its report is not verified. */
  | { readonly kind: "unproven" }
  /** An endpoint that is up has not reached the block, the blocks above it, or its receipts. */
  | { readonly kind: "behind"; readonly detail: string }
  /** Two endpoints show another block at that height: a reorg that the follower has not seen yet. */
  | { readonly kind: "moved" }
  /** Two endpoints differ, or one contradicts itself. Each answer names its endpoint. */
  | { readonly kind: "disagree"; readonly answers: readonly string[] };

/** State of one endpoint, from its last answers. */
export interface EndpointHealth {
  /** Scheme and host only: the path may contain a key. */
  readonly url: string;
  /** "unknown": it was not asked yet. */
  readonly status: EndpointState | "unknown";
  /** Blocks behind the highest head at the last comparison; null if there was none. */
  readonly behind: number | null;
}

/** Transaction count of an address at one endpoint. */
export interface Counted {
  readonly count: number;
  readonly endpoint: string;
}

export type BlockTag = "latest" | "safe" | "finalized";

/**
 * Permission to send. It is called synchronously in the tick in which a connected socket takes the bytes, again for
 * each endpoint and each retry. So a stop holds however long the call waited for a slot, a connection or a chain check.
 * A call that has begun is never aborted.
 */
export type MayLeave = () => boolean;

/** Signed bytes, each with its own permission: calls of several lanes share a request. */
export interface Send {
  readonly raw: Hex;
  readonly mayLeave: MayLeave;
}

export interface SubmitOptions {
  readonly everywhere?: boolean;
  /** True: only private endpoints. Absent: any endpoint that takes sends. */
  readonly privately?: boolean;
}

/**
 * One chain behind one or more endpoints. A method answers from an endpoint that is up, or throws `ChainUnavailable`.
 * `null` is always the answer of a healthy endpoint, never a failed call (invariant I7).
 */
export interface Chain {
  readonly chainId: number;
  /** Number of configured endpoints; with one there is no second opinion. */
  readonly endpoints: number;
  /** Endpoints with `send: "only"`. If there are any, a transaction goes only to them until it is disclosed. */
  readonly privateEndpoints: readonly string[];
  /** State of each endpoint, in order of preference. Sends no request. Absent: unknown. */
  health?(): readonly EndpointHealth[];

  /**
   * The latest or tagged block with transaction hashes; null if no endpoint shows the tag. The latest block is the
   * claim of one endpoint. A tagged block was reached by two endpoints among those that are up and have ever shown the
   * tag.
   */
  head(tag: BlockTag): Promise<Block | null>;
  /** Highest block, up to this one, that two endpoints have reached; the claim of one if no other is up. */
  heightReached(upTo: number): Promise<number>;
  /** Canonical blocks by number, in the order asked; null for a height that the node does not have. */
  blocksByNumber(numbers: readonly number[]): Promise<readonly (Block | null)[]>;
  blockByHash(hash: Hash): Promise<Block | null>;
  /** The block that two endpoints show at that height. */
  secondOpinion(blockNumber: number): Promise<SecondOpinion>;

  /**
   * Receipts of one block, restricted to `hashes`. One call fetches all, unless few are wanted or the node lacks the
   * method.
   */
  receiptsInBlock(block: Block, hashes: readonly Hash[]): Promise<readonly Receipt[]>;
  /** Receipts by hash, in the order asked; null if that endpoint knows none. */
  receipts(hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]>;

  /**
   * Verifies receipts before they decide an outcome, in the order asked. Each endpoint gets one request for all
   * transactions of the block. While two endpoints are up, the answer of one is not enough: any may have reported false
   * data. An endpoint with fewer than `depth` blocks above this one is behind.
   */
  settleReceipts(
    block: BlockPlace,
    transactions: readonly Settling[],
    depth: number,
  ): Promise<readonly ReceiptVerdict[]>;

  transactionCount(address: Address, tag: "latest" | "pending"): Promise<Counted>;
  /**
   * The mined or pending count at every endpoint that is up, with whether its head has reached `atBlock`. A single
   * answer means that only one endpoint is up. Throws `ChainUnavailable` if none answers.
   */
  transactionCountEverywhere(
    address: Address,
    atBlock: number,
    tag?: "latest" | "pending",
  ): Promise<readonly CountAnswer[]>;
  /**
   * Hashes in the node's pool at these nonces, null for an empty one; null for the list if the node cannot report its
   * pool.
   */
  pooled(address: Address, nonces: readonly number[]): Promise<readonly (Hash | null)[] | null>;
  /** Mined count at a block; null if the endpoint has pruned that state. */
  transactionCountAt(address: Address, blockNumber: number): Promise<number | null>;
  /** Transactions of this address in a canonical block, in order; null if the endpoint does not have the block. */
  sentInBlock(address: Address, blockNumber: number): Promise<readonly ChainTransaction[] | null>;
  /** The node's own look-up, mined or pooled. Null: it knows none. "unsupported": it has no such method. */
  transactionBySenderAndNonce(address: Address, nonce: number): Promise<ChainTransaction | null | "unsupported">;
  /** Mined or pooled; null if that endpoint knows none. */
  transaction(hash: Hash): Promise<ChainTransaction | null>;
  balance(address: Address): Promise<bigint>;

  /**
   * Asked anew each time, also of an endpoint that serves another chain and is otherwise unused. `genesisHash` is the
   * known genesis hash: an endpoint that reconnects must have it.
   */
  identity(genesisHash: Hash | null): Promise<ChainIdentity>;
  /** The same for every endpoint that is up; empty if none serves this chain. */
  identityEverywhere(): Promise<readonly EndpointAnswer<ChainIdentity>[]>;

  /** With two endpoints up, prices come from both, and the second is asked once. */
  feeMarket(): Promise<FeeMarket>;
  /** Registers a listener for hints of a new head. A hint may be false. Absent: there are no hints. */
  onNewHead?(listener: () => void): void;
  /** `eth_estimateGas` without `call.gas`, `eth_call` with it. Limits are not checked here. */
  simulate(call: Call): Promise<Simulation>;
  /** The same for every endpoint that is up. */
  simulateEverywhere(call: Call): Promise<readonly EndpointAnswer<Simulation>[]>;
  /** The same with head and market of each endpoint: all facts that a refusal may use. */
  prospects(call: Call): Promise<readonly EndpointAnswer<Prospect>[]>;

  /**
   * Sends in the order given, as JSON-RPC batches. Never throws for a node's answer or silence: a lost reply is
   * `unknown`. One result per input. `everywhere`: every endpoint that is up, not only the first that answers.
   */
  submit(sends: readonly Send[], options?: SubmitOptions): Promise<readonly (SubmitResult | NotStarted)[]>;
  /**
   * Lets the node sign and send with its own key (`eth_sendTransaction`). Never throws for a node's answer or silence.
   * One endpoint is asked, once: another may not hold the key, or sign other bytes.
   */
  sendUnsigned(
    from: Address,
    transaction: UnsignedTransaction,
    mayLeave: MayLeave,
    options?: Pick<SubmitOptions, "privately">,
  ): Promise<NodeSubmission | NotStarted>;
  /**
   * Forwards a caller's JSON-RPC request to one endpoint; another is asked only if there is no answer, not after an
   * error. It uses separate connections, so that a slow answer does not delay the node.
   */
  passOn(method: string, params: unknown): Promise<PassedAnswer>;
  /**
   * Forwards a transaction that was signed elsewhere, in the same way. Nothing is stored. A stop applies to it as well.
   */
  passSigned(raw: Hex, mayLeave: MayLeave): Promise<PassedAnswer | NotStarted>;
  /**
   * Logs and revert reason from one endpoint, for display. Null if it knows no such receipt. Throws `ChainUnavailable`.
   */
  outcome(question: OutcomeQuestion): Promise<ShownOutcome | null>;
  close(): Promise<void>;
}

/** The endpoint's result, unchanged. */
export type PassedAnswer =
  | { readonly kind: "result"; readonly result: unknown }
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data?: unknown };

export class ChainUnavailable extends Error {
  override readonly name: string = "ChainUnavailable";
  /** The endpoint is up but rate-limited (429): it will answer again soon and does not count as down. */
  readonly limited: boolean;

  constructor(message: string, { limited = false, ...options }: ErrorOptions & { readonly limited?: boolean } = {}) {
    super(message, options);
    this.limited = limited;
  }
}

/** The chain's answer, or `otherwise` if the chain does not answer now. */
export function unlessSilent<T, E>(asking: Promise<T>, otherwise: E): Promise<T | E> {
  return asking.catch((error: unknown) => {
    if (error instanceof ChainUnavailable) return otherwise;
    throw error;
  });
}

/** "failing": it does not answer. "behind": it lags behind another. "foreign": it serves another chain. */
export type EndpointState = "up" | "failing" | "behind" | "foreign";

export interface OutcomeQuestion {
  readonly txHash: Hash;
  /** Set if it reverted: the call, to be repeated on the state before its block. */
  readonly replay: { readonly call: Call; readonly onBlock: number } | null;
}

/**
 * Facts about a mined transaction that are not stored, as one endpoint shows them. For display only: nothing is decided
 * by it.
 */
export interface ShownOutcome {
  readonly blockHash: Hash;
  /** The first logs. */
  readonly logs: readonly ShownLog[];
  /** Number of further logs. */
  readonly more: number;
  /** Null if the repeated call did not revert, or could not be made. */
  readonly revert: Revert | null;
}

export interface ShownLog {
  readonly address: Address;
  readonly topics: readonly Hash[];
  /** The first bytes; `dataLength` is the full length. */
  readonly data: Hex;
  readonly dataLength: number;
  /** Set if the first topic is that of a well-known event and the rest matches its layout. */
  readonly event: KnownEvent | null;
}

export interface KnownEvent {
  readonly name: string;
  /** Addresses, and numbers as digits. */
  readonly args: readonly { readonly name: string; readonly value: string }[];
}

export interface Call extends Pick<Payload, "to" | "data" | "value" | "gas" | "accessList"> {
  readonly from: Address;
  /** Gas for a receiver without code, if known. Then no estimate is needed. */
  readonly gasWithoutCode?: bigint;
  /** Ask also whether the receiver has code. */
  readonly asksCode?: true;
}

export interface Revert {
  /** Name of the error or panic, if the data shows it. */
  readonly name: string | null;
  /** Decoded reason, if there is one. */
  readonly message: string | null;
  readonly data: Hex;
}
