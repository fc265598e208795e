/** Keys outside this process: a service signs each transaction, and the signature is checked here. */
import type { Address } from "../../../../domain/lane.ts";
import { messageOf } from "../../../../domain/text/thrown.ts";
import type { UnsignedTransaction } from "../../../../domain/transaction/transaction.ts";
import { type SignedTransaction, SignerAway } from "../../../../ports/signer.ts";
import { addressOf } from "../private-keys.ts";
import { type Curve, loadCurve } from "../worker/curve.js";
import type { EncodedTransaction, EthereumSignature } from "../worker/serialise.js";
import { hashToSign } from "../worker/sign.js";

export interface RemoteKey {
  readonly address: Address;
  /** Signs one transaction. Throws `SignerAway`. */
  sign(transaction: UnsignedTransaction): Promise<SignedTransaction>;
}

/** Concurrent signatures: a key service takes tens of milliseconds for each, and limits the rate. */
const AT_ONCE = 16;

/** Signs in order. If one fails, the error contains the signatures before it. */
export async function signEach(
  key: RemoteKey,
  transactions: readonly UnsignedTransaction[],
): Promise<readonly SignedTransaction[]> {
  const made: SignedTransaction[] = [];
  for (let from = 0; from < transactions.length; from += AT_ONCE) {
    const asked = await Promise.allSettled(transactions.slice(from, from + AT_ONCE).map((each) => key.sign(each)));
    for (const answer of asked) {
      if (answer.status === "rejected") throw withSigned(answer.reason, made);
      made.push(answer.value);
    }
  }
  return made;
}

function withSigned(error: unknown, signed: readonly SignedTransaction[]): SignerAway {
  return new SignerAway(messageOf(error), { signed, lies: error instanceof SignerAway && error.lies, cause: error });
}

/** Order of secp256k1, and half of it: nodes refuse a signature with a higher s (EIP-2). */
export const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
export const HALF_ORDER = CURVE_ORDER / 2n;

let curve: Promise<Curve> | null = null;

/** True if the address's key signed exactly this transaction. */
export async function isSignedBy(
  address: Address,
  transaction: EncodedTransaction,
  signature: EthereumSignature,
): Promise<boolean> {
  // Loaded once, and only for keys outside this process.
  curve ??= loadCurve();
  const key = await (await curve).recover(hashToSign(transaction), signature);
  return key !== null && addressOf(key) === address;
}

/** The service answered, but not with the signature that was asked for. */
export function wrongAnswer(message: string): SignerAway {
  return new SignerAway(message, { lies: true });
}
