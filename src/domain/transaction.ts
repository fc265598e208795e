import type { Fees, FeeWishes } from "./fees.ts";
import type { Address, Hash, Hex, Lane } from "./lane.ts";
import type { Status } from "./transitions.ts";

export interface AccessListEntry {
  readonly address: Address;
  readonly storageKeys: readonly Hash[];
}

/** What the caller wants on chain, after normalisation: one form for raw fields, ABI calls and deployments. */
export interface Payload extends FeeWishes {
  /** Null deploys. */
  readonly to: Address | null;
  readonly data: Hex;
  readonly value: bigint;
  /** Given by the caller; without it gas is estimated before allocation. */
  readonly gas?: bigint;
  readonly accessList?: readonly AccessListEntry[];
}

/** Everything that a create may say. None of it changes later: an operator's action puts another payload beside it. */
export const CREATE_FIELDS = [
  ...(["chainId", "signer", "nonce", "requestId", "payload"] as const),
  ...(["allowNoCode", "validUntil", "metadata"] as const),
];

/** A caller's intent, normalised and named. */
export interface Intent {
  readonly txId: string;
  readonly lane: Lane;
  readonly requestId: string | null;
  /** The name of the API key that asked for it; null where none was, and for what was accepted before keys owned anything. */
  readonly owner: string | null;
  readonly payload: Payload;
  /** SHA-256 over the normalised payload: equal payloads, equal fingerprints (domain/fingerprint.ts). */
  readonly fingerprint: Hex;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The pool that its lane was chosen from; absent: its caller named the signer. */
  readonly pool?: string;
  /** The caller's word that its receiver need not have code. Says nothing about what is signed, and is not compared. */
  readonly allowNoCode?: true;
  /** Its caller named the nonce: given exactly this one, or refused. */
  readonly exactNonce?: number;
  /** Its caller's word: not mined by then, it is cancelled. Part of what repeats are compared by. */
  readonly validUntil?: Date;
}

/** An intent with everything that signing needs besides nonce and price. */
export interface PreparedIntent extends Intent {
  readonly gas: bigint;
  /** The most that its gas can cost at the price of that moment, blobs included: what policies count. */
  readonly gasCost: bigint;
}

/** What is signed. */
export interface UnsignedTransaction extends Pick<Payload, "to" | "data" | "value"> {
  readonly chainId: number;
  readonly nonce: number;
  readonly gas: bigint;
  readonly fees: Fees;
  readonly accessList: readonly AccessListEntry[];
}

export const ATTEMPT_KINDS = ["initial", "reprice", "cancel", "replace", "placeholder", "external"] as const;
export type AttemptKind = (typeof ATTEMPT_KINDS)[number];

/** One signed payload of a transaction at its nonce. Every attempt's hash is tracked until finality. */
export interface Attempt {
  /** 1 for the first payload of a transaction. */
  readonly ordinal: number;
  readonly kind: AttemptKind;
  /** Null: a node signs it with a key of its own, and has not said yet which transaction that made. */
  readonly txHash: Hash | null;
  readonly gas: bigint;
  readonly fees: Fees;
  /** Not the caller's payload: another program used the key at this nonce. Never sent by us. */
  readonly foreign?: true;
  /** Signed by the chain node itself: there are no bytes of it here. */
  readonly nodeSigned?: true;
  /** Given to private endpoints alone (`send: "only"`), and not disclosed since. */
  readonly private?: true;
}

export interface SignedAttempt extends Attempt {
  /** Null where only its hash is known. */
  readonly rawTransaction: Hex | null;
}

export interface Receipt {
  readonly txHash: Hash;
  readonly blockNumber: number;
  readonly blockHash: Hash;
  readonly transactionIndex: number;
  readonly status: "success" | "reverted";
  readonly gasUsed: bigint;
  readonly effectiveGasPrice: bigint | null;
  readonly contractAddress: Address | null;
  /** Wei that was paid beside gas × price: for blobs (EIP-4844), and to a rollup for its data. Absent: none. */
  readonly besideGas?: bigint;
  /** No block commits to that, and no second endpoint says the same: it may be more. */
  readonly besideGasUnsure?: true;
}

/** A transaction that owns a nonce, as the lane's owner works with it. */
export interface LaneTransaction extends Status {
  readonly txId: string;
  readonly nonce: number;
}
