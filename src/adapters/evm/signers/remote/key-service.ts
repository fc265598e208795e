/**
 * Keys in a key management service. It signs a hash and returns an ECDSA signature in DER. Ethereum also needs a low s
 * (EIP-2) and the parity; they are computed here, which verifies the signature.
 */
import { createPublicKey } from "node:crypto";
import type { Address } from "../../../../domain/lane.ts";
import { messageOf } from "../../../../domain/text/thrown.ts";
import { SignerAway } from "../../../../ports/signer.ts";
import { addressOf, BadKey } from "../private-keys.ts";
import { type EncodedTransaction, encodeTransaction } from "../worker/serialise.js";
import { signTransaction } from "../worker/sign.js";
import { CURVE_ORDER, HALF_ORDER, isSignedBy, type RemoteKey, wrongAnswer } from "./remote-key.ts";
import { openServiceHttp, type ServicePorts, type SignerPorts } from "./service-http.ts";

export interface KeyService {
  /** Name for messages, such as "AWS KMS key alias/hot". */
  readonly name: string;
  /** SubjectPublicKeyInfo: DER, or PEM text. */
  publicKey(): Promise<Buffer | string>;
  /** The signature in DER. */
  signHash(hash: Uint8Array): Promise<Uint8Array>;
}

/** Opens every key of one service, or none: the connections are closed if one fails. */
export async function openKeys(ports: SignerPorts, services: (ports: ServicePorts) => readonly KeyService[]) {
  const http = openServiceHttp(ports.clock);
  try {
    return { keys: await Promise.all(services({ ...ports, http }).map(openKey)), close: () => http.close() };
  } catch (error) {
    await http.close();
    throw error;
  }
}

/** Reuses a credential until five minutes before it ends, by `leftMs`; null: it does not end. A fetch that failed is repeated at the next use. */
export function renewed<T>(fetch: () => Promise<T>, leftMs: (credential: T) => number | null): () => Promise<T> {
  let known: Promise<T> | null = null;
  return async () => {
    const current = await known?.catch(() => null);
    const left = current == null ? 0 : leftMs(current);
    if (known === null || (left !== null && left < RENEW_AHEAD_MS)) known = fetch();
    return known;
  };
}

const RENEW_AHEAD_MS = 5 * 60_000;

async function openKey(service: KeyService): Promise<RemoteKey> {
  const address = addressOf(pointOf(service.name, await service.publicKey()));
  return {
    address,
    sign: async (transaction) => {
      const encoded = encodeTransaction(transaction);
      return signTransaction(encoded, async (hash) => {
        return provenSignature(service.name, address, encoded, parseDer(service.name, await service.signHash(hash)));
      });
    },
  };
}

/** The public point, 65 bytes. A key on another curve than secp256k1 is a configuration error. */
function pointOf(name: string, key: Buffer | string): Buffer {
  const spki = typeof key === "string" ? key : ({ key, format: "der", type: "spki" } as const);
  try {
    const { crv, x = "", y = "" } = createPublicKey(spki).export({ format: "jwk" });
    if (crv !== "secp256k1") throw new Error(`it is on the curve ${crv ?? "of none"}`);
    return Buffer.concat([Buffer.of(4), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
  } catch (cause) {
    throw new BadKey(`${name} has no public key of secp256k1 (${messageOf(cause)})`, { cause });
  }
}

/** Both s and n − s are valid; nodes accept the lower one (EIP-2). The parity is found by trying both. */
async function provenSignature(name: string, address: Address, encoded: EncodedTransaction, { r, s }: Scalars) {
  const low = s > HALF_ORDER ? CURVE_ORDER - s : s;
  const scalars = { r: r.toString(16).padStart(64, "0"), s: low.toString(16).padStart(64, "0") };
  for (const yParity of [0, 1] as const) {
    const signature = { ...scalars, yParity };
    if (await isSignedBy(address, encoded, signature)) return signature;
  }
  throw wrongAnswer(`${name} signed something else, or with another key than that of ${address}`);
}

/**
 * Parses SEQUENCE { INTEGER r, INTEGER s } (RFC 3279) without trailing bytes. Both integers are shorter than 128 bytes,
 * so lengths have one byte.
 */
function parseDer(name: string, der: Uint8Array) {
  const rLength = der[3] ?? 0;
  const sAt = 4 + rLength;
  const sLength = der[sAt + 1] ?? 0;
  const isWhole = der[1] === der.length - 2 && sAt + 2 + sLength === der.length;
  const isSequence = der[0] === 0x30 && der[2] === 2 && der[sAt] === 2;
  if (!isSequence || !isWhole || rLength === 0 || sLength === 0) throw wrongAnswer(`${name} gave no ECDSA signature`);
  const [r, s] = [integer(der.subarray(4, sAt)), integer(der.subarray(sAt + 2))];
  const isScalar = (value: bigint) => value > 0n && value < CURVE_ORDER;
  if (!isScalar(r) || !isScalar(s)) throw wrongAnswer(`${name} gave a signature that is none of secp256k1`);
  return { r, s };
}

type Scalars = ReturnType<typeof parseDer>;

function integer(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
}

const LONGEST_WORDS = 300;

/** The service's error text, with a limit: it appears in alerts and answers. */
export function refusal(name: string, status: number, said: string): SignerAway {
  const words = said.replace(/\p{Cc}+/gu, " ").slice(0, LONGEST_WORDS);
  return new SignerAway(`${name} answered ${status}${words === "" ? "" : `: ${words}`}`);
}
