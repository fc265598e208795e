/**
 * Checks signatures by recovering the key that made them. No answer of a key holder is trusted: another key, another
 * content or a form that chains and contracts refuse is found here, before the signature is used.
 */
import type { Address, Hash, Hex } from "../../../domain/lane.ts";
import { SignerAway } from "../../../ports/signer.ts";
import { keccakLoaded } from "../threads/keccak.js";
import { addressOf } from "./private-keys.ts";
import type { Curve } from "./worker/curve.js";
import type { EthereumSignature } from "./worker/serialise.js";

/** Group order of secp256k1. Half of it is the limit for s: nodes refuse a signature with a higher s (EIP-2). */
export const CURVE_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
export const HALF_ORDER = CURVE_ORDER / 2n;

let curve: Promise<Curve> | null = null;

/** Loads the curve once, and only if a signature is checked in this thread. */
async function loadedCurve() {
  const { loadCurve } = await import("./worker/curve.js");
  return loadCurve();
}

/** True if the address's key signed exactly this hash. */
export async function isSignedBy(address: Address, hash: Uint8Array, signature: EthereumSignature): Promise<boolean> {
  curve ??= loadedCurve();
  await keccakLoaded;
  const key = await (await curve).recover(hash, signature);
  return key !== null && addressOf(key) === address;
}

/** Error: the key holder answered, but not with the requested signature. */
export const wrongAnswer = (message: string) => new SignerAway(message, { lies: true });

/** Subject of a message's signature. */
interface Signed {
  readonly address: Address;
  readonly digest: Hash;
  /** Name of the key holder in error messages. */
  readonly label: string;
}

const SIGNATURE = /^0x([\da-f]{64})([\da-f]{64})([\da-f]{2})$/i;
/** Values of v for parity 0 and 1. Some key holders leave out the 27. */
const PARITIES = [0, 1, 27, 28];

/**
 * The signature of a message as contracts and libraries expect it, if the answer is one by the address's key: 65 bytes,
 * low s, v 27 or 28. A v of EIP-155 belongs to a transaction, and `ecrecover` refuses it.
 */
export async function provenSignature(answer: unknown, { address, digest, label }: Signed): Promise<Hex> {
  const [, r, s, last] = (typeof answer === "string" && SIGNATURE.exec(answer.toLowerCase())) || [];
  if (r === undefined || s === undefined || last === undefined)
    throw wrongAnswer(`${label} answered with something that is no signature of 65 bytes`);
  const v = Number.parseInt(last, 16);
  if (!PARITIES.includes(v)) throw wrongAnswer(`${label} made a signature with v ${v}, but a message's is 27 or 28`);
  if (BigInt(`0x${s}`) > HALF_ORDER)
    throw wrongAnswer(`${label} made a signature that contracts refuse (EIP-2: its s is too high)`);
  const yParity = v % 27 === 0 ? 0 : 1;
  if (!(await isSignedBy(address, bytesOf(digest), { r, s, yParity })))
    throw wrongAnswer(`${label} signed another message, or with another key than that of ${address}`);
  return `0x${r}${s}${(27 + yParity).toString(16)}`;
}

export const bytesOf = (hash: Hash): Uint8Array => Buffer.from(hash.slice(2), "hex");
