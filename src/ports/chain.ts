import type { NotStarted, SubmitResult } from "../domain/answers.ts";
import type { BlockRef } from "../domain/block-window.ts";
import type { CountAnswer } from "../domain/counts.ts";
import type { FeeMarket, Fees } from "../domain/fees.ts";
import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { Receipt, UnsignedTransaction } from "../domain/transaction.ts";
import type { Call, OutcomeQuestion, Revert, ShownOutcome } from "./shown-outcome.ts";

export type { Call, Revert } from "./shown-outcome.ts";

export interface Block extends BlockRef {
  readonly transactionHashes: readonly Hash[];
  readonly baseFeePerGas: bigint | null;
  readonly gasLimit: bigint;
  /** Its header hashes to its hash. False: an endpoint changed it, or chains of this kind hash otherwise. Absent: not checked. */
  readonly headerHolds?: boolean;
}

/** A block by its height and its hash. */
export type BlockPlace = Pick<BlockRef, "number" | "hash">;

/** A transaction as the chain shows it: whose it is and what it says. */
export interface ChainTransaction extends Omit<UnsignedTransaction, "chainId" | "accessList"> {
  readonly txHash: Hash;
  readonly from: Address;
  /** Blob and delegation transactions pay as EIP-1559 does; what more they pay is left out. */
  readonly fees: Fees;
  /** Where the endpoint has it mined; null: it waits in a pool. */
  readonly block: BlockPlace | null;
}

/** What a transaction does, whoever sent it. */
export type SentContents = Pick<ChainTransaction, "to" | "value" | "data">;

/** Which chain an endpoint serves, by its own word. */
export interface ChainIdentity {
  readonly chainId: number;
  /** Null where the endpoint does not keep its first block. */
  readonly genesisHash: Hash | null;
}

/** What one endpoint says; "silent": it is up as far as is known, and gave no answer this time. */
export type Heard<T> = { readonly kind: "says"; readonly answer: T } | { readonly kind: "silent" };

/** What a node that signs by itself made of a payload. */
export interface NodeSubmission extends SubmitResult {
  /** Known only where the answer arrived. */
  readonly txHash: Hash | null;
}

/** What the chain says of a call that has not been sent yet. Anything it cannot say throws `ChainUnavailable`. */
export type Simulation =
  /** `balance`: the sender's, in the same answer. `hasCode`: whether the receiver has code; absent where it was not asked, or could not be read. */
  | { readonly outcome: "ok"; readonly gas: bigint; readonly balance: bigint; readonly hasCode?: boolean }
  | { readonly outcome: "revert"; readonly revert: Revert }
  | { readonly outcome: "insufficientFunds"; readonly detail: string }
  | { readonly outcome: "gasTooLow"; readonly detail: string }
  | { readonly outcome: "gasOverBlock"; readonly detail: string };

/** All that one endpoint says of a call. Its head was asked for first: the rest is of that block, or of a later one. */
export interface Prospect {
  readonly head: Block;
  readonly market: FeeMarket;
  readonly simulation: Simulation;
}

/** What the endpoints that are up show at a height. */
export type SecondOpinion =
  /** Fewer than two are up: there is no second endpoint to ask. */
  | { readonly kind: "none" }
  /** Two show this block. */
  | { readonly kind: "agreed"; readonly hash: Hash }
  /** Too few have come to that height to agree on it. */
  | { readonly kind: "behind" }
  | { readonly kind: "disagree"; readonly answers: readonly string[] };

/** A transaction whose receipt is about to decide something. */
export interface Settling {
  readonly txHash: Hash;
  /** Whose transaction it has to be, where an endpoint or a caller named the hash and nothing was signed here. */
  readonly sentBy?: { readonly signer: Address; readonly nonce: number };
}

/** Whether what one endpoint said of a receipt may decide an outcome. */
export type ReceiptVerdict =
  /** Two endpoints give this receipt; or one alone is up, and its block's own hash bears the receipt out. */
  | {
      readonly kind: "agreed";
      readonly receipt: Receipt;
      /** Where `sentBy` was asked: what the transaction does, known in the same way. */
      readonly sent?: SentContents;
    }
  /** Known in the same way: that block does not hold this transaction, or it is another sender's. */
  | { readonly kind: "absent"; readonly detail: string }
  /** One alone is up, and blocks of this chain cannot be recomputed: what was said before is all there is. */
  | { readonly kind: "unproven" }
  /** An endpoint that is up has not come so far yet: to the block, to the blocks on top of it, or to its receipts. */
  | { readonly kind: "behind"; readonly detail: string }
  /** Two endpoints show another block at that height: the block has left the chain, and the follower has yet to see it. */
  | { readonly kind: "moved" }
  /** Two endpoints differ, or one contradicts itself. Each answer names who gave it. */
  | { readonly kind: "disagree"; readonly answers: readonly string[] };

/** One endpoint as it is used now, by what it was last heard to say. */
export interface EndpointHealth {
  /** Scheme and host alone: a path may be a key. */
  readonly url: string;
  /** "unknown": nothing was asked of it yet. */
  readonly status: EndpointState | "unknown";
  /** How many blocks it was behind the highest head when heads were last compared; null: they were not. */
  readonly behind: number | null;
}

/** How many transactions of an address one endpoint counts. */
export interface Counted {
  readonly count: number;
  readonly endpoint: string;
}

export type BlockTag = "latest" | "safe" | "finalized";

/**
 * Asked synchronously in the tick in which the bytes are handed to a connected socket, for each endpoint and each repeat
 * anew: whatever a call waited for before (a slot, a connection, an endpoint's proof of its chain), a stop that was answered
 * meanwhile holds. What has begun is never aborted.
 */
export type MayLeave = () => boolean;

/** Signed bytes to send, each with a permission of its own: calls of several lanes share a request. */
export interface Send {
  readonly raw: Hex;
  readonly mayLeave: MayLeave;
}

export interface SubmitOptions {
  readonly everywhere?: boolean;
  /** To private endpoints and to no other. Absent: to any that takes sends. */
  readonly privately?: boolean;
}

/**
 * One chain behind one or several endpoints. A method answers from an endpoint that is up, or throws
 * `ChainUnavailable`: absence (`null`) is only ever what a healthy endpoint said, never a failed call (I7).
 */
export interface Chain {
  readonly chainId: number;
  /** How many endpoints are configured; decides whether a second opinion can be asked for. */
  readonly endpoints: number;
  /** Those with `send: "only"`. Where there are any, a transaction goes to these alone until it is disclosed. */
  readonly privateEndpoints: readonly string[];
  /** How each of them is doing, in order of preference. Asks nothing. Absent: it is not known. */
  health?(): readonly EndpointHealth[];

  /**
   * Latest (or tagged) block with transaction hashes; null where there is no such tag to go by. The latest is one
   * endpoint's word; a tag has come as far as two endpoints say, of those that are up and have ever shown it.
   */
  head(tag: BlockTag): Promise<Block | null>;
  /** The highest block, up to this one, that two endpoints have come to; by the word of one where no other is up. */
  heightReached(upTo: number): Promise<number>;
  /** Canonical blocks by number, in the order asked; null where the node has none at that height. */
  blocksByNumber(numbers: readonly number[]): Promise<readonly (Block | null)[]>;
  blockByHash(hash: Hash): Promise<Block | null>;
  /** Which block two endpoints show at that height. */
  secondOpinion(blockNumber: number): Promise<SecondOpinion>;

  /** Receipts of one block, restricted to `hashes`: in one call where the node has it, unless most are of no interest. */
  receiptsInBlock(block: Block, hashes: readonly Hash[]): Promise<readonly Receipt[]>;
  /** Receipts by hash, in the order asked; null = that endpoint knows none. */
  receipts(hashes: readonly Hash[]): Promise<readonly (Receipt | null)[]>;

  /**
   * Asked before a receipt decides, in the order asked; of each endpoint one question for all transactions of the block.
   * Every endpoint that is up may have lied before, and no one endpoint's word is enough while two are up. An endpoint with
   * fewer blocks than `depth` on top of this one is behind.
   */
  settleReceipts(
    block: BlockPlace,
    transactions: readonly Settling[],
    depth: number,
  ): Promise<readonly ReceiptVerdict[]>;

  transactionCount(address: Address, tag: "latest" | "pending"): Promise<Counted>;
  /**
   * The mined count, or the pending one, by the word of every endpoint that is up, one answer each; whether its head has
   * come to `atBlock` is part of it. A single answer: only one endpoint is up. Throws `ChainUnavailable` where none
   * answers.
   */
  transactionCountEverywhere(
    address: Address,
    atBlock: number,
    tag?: "latest" | "pending",
  ): Promise<readonly CountAnswer[]>;
  /** Hashes of what waits in the node's pool at these nonces, null where nothing does; null where the node cannot tell. */
  pooled(address: Address, nonces: readonly number[]): Promise<readonly (Hash | null)[] | null>;
  /** The mined count as of a block; null where the endpoint no longer keeps that state (a pruned node). */
  transactionCountAt(address: Address, blockNumber: number): Promise<number | null>;
  /** What this address sent in a canonical block, in order; null where the endpoint has no such block. */
  sentInBlock(address: Address, blockNumber: number): Promise<readonly ChainTransaction[] | null>;
  /** The node's own look-up, mined or pooled. Null: it knows none. "unsupported": it has no such look-up. */
  transactionBySenderAndNonce(address: Address, nonce: number): Promise<ChainTransaction | null | "unsupported">;
  /** Mined or pooled; null: that endpoint knows none. */
  transaction(hash: Hash): Promise<ChainTransaction | null>;
  balance(address: Address): Promise<bigint>;

  /**
   * Asked anew each time, also of an endpoint that turned out to serve another chain and is not used for anything else.
   * `genesisHash` is how the chain is known to begin: an endpoint that comes back after a loss of contact must begin like that.
   */
  identity(genesisHash: Hash | null): Promise<ChainIdentity>;
  /** The same by the word of every endpoint that is up, one answer each; none where no endpoint serves this chain. */
  identityEverywhere(): Promise<readonly Heard<ChainIdentity>[]>;

  /** With two endpoints up, no price is one endpoint's word alone, and the second is asked once. */
  feeMarket(): Promise<FeeMarket>;
  /** Told that there may be a new head: a hint, which anybody may lie about. Absent: nobody tells. */
  hearHeads?(listener: () => void): void;
  /** eth_estimateGas where `call.gas` is absent, eth_call under that gas where it is present. No limit is compared. */
  simulate(call: Call): Promise<Simulation>;
  /** The same by the word of every endpoint that is up, one answer each. */
  simulateEverywhere(call: Call): Promise<readonly Heard<Simulation>[]>;
  /** The same, with head and market of each: all that a refusal may rest on. */
  prospects(call: Call): Promise<readonly Heard<Prospect>[]>;

  /**
   * Sends in the order given, as JSON-RPC batches. Never throws for what a node answered or failed to answer: a reply
   * that was lost is `unknown`. One result per input. `everywhere`: to every endpoint that is up, not only to the first
   * that answers.
   */
  submit(sends: readonly Send[], options?: SubmitOptions): Promise<readonly (SubmitResult | NotStarted)[]>;
  /**
   * Has the node sign and send with a key of its own (`eth_sendTransaction`). Never throws for what it answered or failed
   * to answer; one endpoint is asked, once: another one may hold no key, or sign in other bytes.
   */
  sendUnsigned(
    from: Address,
    transaction: UnsignedTransaction,
    mayLeave: MayLeave,
    options?: Pick<SubmitOptions, "privately">,
  ): Promise<NodeSubmission | NotStarted>;
  /**
   * A caller's own question, in its own words. One endpoint's answer, be it an error; another is asked only where there is
   * none. Apart from what this node asks: a slow answer delays none of that.
   */
  passOn(method: string, params: unknown): Promise<PassedAnswer>;
  /** What a stranger signed, in the same way. Nothing of it is kept here; a stop holds for it all the same. */
  passSigned(raw: Hex, mayLeave: MayLeave): Promise<PassedAnswer | NotStarted>;
  /** For a person who asks: one endpoint's word, in the same way. Null: it knows no such receipt. Throws `ChainUnavailable`. */
  outcome(question: OutcomeQuestion): Promise<ShownOutcome | null>;
  close(): Promise<void>;
}

/** As the endpoint gave it. */
export type PassedAnswer =
  | { readonly kind: "result"; readonly result: unknown }
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data?: unknown };

export class ChainUnavailable extends Error {
  /** The endpoint is up but limits our rate (429): it answers again soon, and does not count as down. */
  readonly limited: boolean;

  constructor(message: string, { limited = false, ...options }: ErrorOptions & { readonly limited?: boolean } = {}) {
    super(message, options);
    this.name = "ChainUnavailable";
    this.limited = limited;
  }
}

/** What the chain says, or this where it does not answer now. */
export function unlessSilent<T, E>(asking: Promise<T>, otherwise: E): Promise<T | E> {
  return asking.catch((error: unknown) => {
    if (error instanceof ChainUnavailable) return otherwise;
    throw error;
  });
}

/** "failing": it does not answer. "behind": it does not keep up with another one. "foreign": it serves another chain. */
export type EndpointState = "up" | "failing" | "behind" | "foreign";
