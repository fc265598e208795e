import type { Address, Hash, Hex, Lane } from "../lane.ts";
import type { Fees, FeeWishes } from "./fees.ts";
import type { Status } from "./transitions.ts";

export interface AccessListEntry {
  readonly address: Address;
  readonly storageKeys: readonly Hash[];
}

/** The caller's payload after normalisation: one form for raw fields, ABI calls and deployments. */
export interface Payload extends FeeWishes {
  /** Receiver; null for a deployment. */
  readonly to: Address | null;
  readonly data: Hex;
  readonly value: bigint;
  /** Gas limit set by the caller; if absent, gas is estimated before allocation. */
  readonly gas?: bigint;
  readonly accessList?: readonly AccessListEntry[];
}

/**
 * All fields of a create. None of them changes later: an operator's action never changes the caller's payload, but adds
 * another payload.
 */
export const CREATE_FIELDS = [
  ...(["chainId", "signer", "nonce", "requestId", "payload"] as const),
  ...(["allowNoCode", "validUntil", "metadata"] as const),
];

/** A caller's request for a transaction, normalised and with its ids. */
export interface Intent {
  readonly txId: string;
  readonly lane: Lane;
  readonly requestId: string | null;
  /**
   * Name of the API key that requested the transaction; null if no key was required, or if the row was written by a
   * release that did not store the name.
   */
  readonly owner: string | null;
  readonly payload: Payload;
  /** SHA-256 over the normalised payload: equal payloads, equal fingerprints (domain/transaction/fingerprint.ts). */
  readonly fingerprint: Hex;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The pool that chose the lane; absent if the caller named the signer. */
  readonly pool?: string;
  /**
   * True if the caller confirms that the receiver need not have code. This is not signed, and a repeat of the request
   * may differ in it.
   */
  readonly allowNoCode?: true;
  /** Nonce that the caller chose. The create gets exactly this nonce or is refused. */
  readonly exactNonce?: number;
  /**
   * The caller's deadline: a transaction that is not mined by then is cancelled. A repeat of the request must have the
   * same one.
   */
  readonly validUntil?: Date;
}

/** An intent with everything that is needed to sign it, except nonce and price. */
export interface PreparedIntent extends Intent {
  readonly gas: bigint;
  /**
   * Highest gas cost of the transaction, blobs included, at the price when it was prepared. Policies count this amount.
   */
  readonly gasCost: bigint;
}

/** The transaction to sign: payload, nonce, gas limit and fees. */
export interface UnsignedTransaction extends Pick<Payload, "to" | "data" | "value"> {
  readonly chainId: number;
  readonly nonce: number;
  readonly gas: bigint;
  readonly fees: Fees;
  readonly accessList: readonly AccessListEntry[];
}

export const ATTEMPT_KINDS = ["initial", "reprice", "cancel", "replace", "placeholder", "external"] as const;
export type AttemptKind = (typeof ATTEMPT_KINDS)[number];

/**
 * One signed payload of a transaction at its nonce. Receipts are searched for the hashes of all attempts until one of
 * them is final.
 */
export interface Attempt {
  /** Number of the attempt: 1 for the first payload of a transaction. */
  readonly ordinal: number;
  readonly kind: AttemptKind;
  /** Hash of the attempt; null if an RPC node signs it with its own key and has not returned the hash. */
  readonly txHash: Hash | null;
  readonly gas: bigint;
  readonly fees: Fees;
  /** True if another program used the key at this nonce: Fencepost never sent this payload. */
  readonly foreign?: true;
  /** True if the RPC node signs the attempt: Fencepost does not have its bytes. */
  readonly nodeSigned?: true;
  /**
   * True if the attempt was sent only to private endpoints (`send: "only"`), and may still not be sent to public ones.
   */
  readonly private?: true;
}

export interface SignedAttempt extends Attempt {
  /** Signed bytes; null if only the attempt's hash is known. */
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
  /** Wei paid in addition to gas × price: for blobs (EIP-4844), or to a rollup for its data. Absent: none. */
  readonly besideGas?: bigint;
  /**
   * True if the additional amount may be higher than reported. The block's hash does not prove it, and no second
   * endpoint confirms it.
   */
  readonly besideGasUnsure?: true;
}

/** A transaction with a nonce, as the lane's owner works with it. */
export interface LaneTransaction extends Status {
  readonly txId: string;
  readonly nonce: number;
}
