import type { Bounded } from "../domain/fees/ceilings.ts";
import type { Declared, ToSign } from "../domain/keys/signing.ts";
import type { Address, Hash, Hex } from "../domain/lane.ts";
import type { MessageToSign } from "../domain/messages/message.ts";
import type { Policy } from "../domain/policy/policy.ts";

export interface SignedTransaction {
  readonly rawTransaction: Hex;
  readonly txHash: Hash;
}

/**
 * Signs with keys in this process or in key services, off the event loop. One instance serves every configured
 * back-end.
 */
export interface Signer {
  /** Every address this node can sign for, lower case. */
  addresses(): readonly Address[];
  /**
   * Who holds the address's key. "node": the RPC node (`eth_sendTransaction`), so that Fencepost gets no signed bytes.
   */
  custody(address: Address): "local" | "node";
  /**
   * Signs all payloads, in order, for one address. The same input may give different bytes each time, because key
   * services use a random number per signature. So only committed bytes may be sent. Throws for an unknown address.
   * `SigningRefused` names the payload that will never be signed; after any other error a retry may succeed.
   *
   * `term` is the lane's fencing token. A signer that remembers payloads by nonce must keep them apart by token:
   * between two ownerships of a node, another node may have owned the lane.
   */
  sign(address: Address, transactions: readonly ToSign[], term?: number): Promise<readonly SignedTransaction[]>;
  /**
   * Signs messages, in order, for one address: 65 bytes each, r, s and v, with low s and v 27 or 28. Throws as `sign`
   * does; `SigningRefused` names the message.
   */
  signMessages(address: Address, messages: readonly MessageToSign[], term?: number): Promise<readonly Hex[]>;
  /**
   * Sets the policies, by signer address, that every later signature must obey. Absent: this signer checks no policy.
   */
  adoptPolicies?(signers: ReadonlyMap<string, Policy>): void;
  close(): Promise<void>;
}

export type DeclaredPayload = Bounded & Declared;

/**
 * The signer as the application uses it: by its types, it accepts only payloads that were checked against the ceilings.
 */
export interface BoundedSigner extends Pick<Signer, "custody" | "signMessages"> {
  sign(address: Address, transactions: readonly DeclaredPayload[], term: number): Promise<readonly SignedTransaction[]>;
}

/**
 * The payload is not signed now; a retry may succeed. The key holder was not reached, or returned something other than
 * the requested signature.
 */
export class SignerAway extends Error {
  override readonly name = "SignerAway";
  /** Signatures that were made before the first payload of the batch that failed. */
  readonly signed: readonly SignedTransaction[];
  /** True if the key holder responded, but not with the requested signature. */
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

/** Returns the signatures, or `otherwise` if the signer is not available now. */
export function unlessAway<T, E>(signing: Promise<T>, otherwise: E): Promise<T | E> {
  return signing.catch((error: unknown) => {
    if (error instanceof SignerAway) return otherwise;
    throw error;
  });
}

/**
 * Error of a signer that checks payloads by a policy or a limit: it refuses this payload for good, unless `undeclared`
 * is true. Temporary failures are other errors.
 */
export class SigningRefused extends Error {
  override readonly name = "SigningRefused";
  /** Index of the refused payload in the batch. */
  readonly index: number;
  /**
   * True if another payload was signed for the nonce and no reason for a second payload was declared: this refusal is
   * not final.
   */
  readonly undeclared: boolean;

  constructor(index: number, message: string, undeclared = false) {
    super(message);
    this.index = index;
    this.undeclared = undeclared;
  }
}
