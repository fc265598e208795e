import type { Bounded } from "../domain/ceilings.ts";
import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { UnsignedTransaction } from "../domain/transaction.ts";

export interface SignedTransaction {
  readonly rawTransaction: Hex;
  readonly txHash: Hash;
}

/** Holds keys; signs off the event loop. One instance serves every back-end that is configured. */
export interface Signer {
  /** Every address this node can sign for, lower case. */
  addresses(): readonly Address[];
  /** "node": the key is the chain node's own (`eth_sendTransaction`), and nothing can be signed here. */
  custody(address: Address): "local" | "node";
  /**
   * Signs all, in order, for one address. Deterministic (RFC 6979): the same input gives the same bytes.
   * Throws for an address that is not held here; a batch is signed whole or not at all,
   * and `SigningRefused` names the one that this signer will never sign.
   */
  sign(address: Address, transactions: readonly UnsignedTransaction[]): Promise<readonly SignedTransaction[]>;
  close(): Promise<void>;
}

/** The signer in the application's hands: only what has passed the ceilings is given to it, or it does not compile. */
export interface BoundedSigner extends Pick<Signer, "custody"> {
  sign(address: Address, transactions: readonly Bounded[]): Promise<readonly SignedTransaction[]>;
}

/** A signer that looks at what it signs (a policy, a limit) says no for good. Anything that may pass is any other error. */
export class SigningRefused extends Error {
  /** Which of the batch. */
  readonly index: number;

  constructor(index: number, message: string) {
    super(message);
    this.name = "SigningRefused";
    this.index = index;
  }
}
