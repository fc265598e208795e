import type { Bounded } from "../domain/ceilings.ts";
import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { Policy } from "../domain/policy/policy.ts";
import type { Declared, ToSign } from "../domain/signing.ts";

export interface SignedTransaction {
  readonly rawTransaction: Hex;
  readonly txHash: Hash;
}

/** Signs with keys that it holds, or has them sign that do; off the event loop. One instance serves every back-end that is configured. */
export interface Signer {
  /** Every address this node can sign for, lower case. */
  addresses(): readonly Address[];
  /** "node": the key is the chain node's own (`eth_sendTransaction`), and no signed bytes are to be had. */
  custody(address: Address): "local" | "node";
  /**
   * Signs all, in order, for one address. The same input may give other bytes each time: key services draw a random number
   * for each signature, and only what was committed may ever be sent. Throws for an address that is not held here;
   * `SigningRefused` names the one that this signer will never sign, any other error means that it may later.
   *
   * `term` is the lane's fencing token. A signer that remembers what it signed for a nonce does so within one term: in
   * between another node may have had the lane.
   */
  sign(address: Address, transactions: readonly ToSign[], term?: number): Promise<readonly SignedTransaction[]>;
  /** From here on nothing is signed that these forbid, of signers by address. Absent: this signer re-checks no policy. */
  adoptPolicies?(signers: ReadonlyMap<string, Policy>): void;
  close(): Promise<void>;
}

export type DeclaredPayload = Bounded & Declared;

/** The signer in the application's hands: only what has passed the ceilings is given to it, or it does not compile. */
export interface BoundedSigner extends Pick<Signer, "custody"> {
  sign(address: Address, transactions: readonly DeclaredPayload[], term: number): Promise<readonly SignedTransaction[]>;
}

/** Not signed now, and perhaps the next time: who holds the key was not reached, or did something else than it was asked. */
export class SignerAway extends Error {
  override readonly name = "SignerAway";
  /** Those of the batch that come before the first that was not signed. */
  readonly signed: readonly SignedTransaction[];
  /** It answered, with something else than the signature that was asked for. */
  readonly lies: boolean;

  constructor(
    message: string,
    { signed = [], lies = false, cause }: Partial<Pick<SignerAway, "signed" | "lies" | "cause">> = {},
  ) {
    super(message, { cause });
    this.signed = signed;
    this.lies = lies;
  }
}

/** What was signed; or what is said instead, where the signer is away. */
export function unlessAway<T, E>(signing: Promise<T>, otherwise: E): Promise<T | E> {
  return signing.catch((error: unknown) => {
    if (error instanceof SignerAway) return otherwise;
    throw error;
  });
}

/** A signer that looks at what it signs (a policy, a limit) says no for good. Anything that may pass is any other error. */
export class SigningRefused extends Error {
  override readonly name = "SigningRefused";
  /** Which of the batch. */
  readonly index: number;
  /** It has signed another payload for the nonce, and nothing says why this one takes its place: not for good, then. */
  readonly undeclared: boolean;

  constructor(index: number, message: string, undeclared = false) {
    super(message);
    this.index = index;
    this.undeclared = undeclared;
  }
}
