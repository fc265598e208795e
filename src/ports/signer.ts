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
  /**
   * Signs all, in order, for one address. Deterministic (RFC 6979): the same input gives the same bytes.
   * Throws for an address that is not held; a batch is signed whole or not at all.
   */
  sign(address: Address, transactions: readonly UnsignedTransaction[]): Promise<readonly SignedTransaction[]>;
  close(): Promise<void>;
}
