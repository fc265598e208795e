/**
 * Keys outside this process. A service signs each transaction or message, and the signature is checked here.
 *
 * A key management service signs a hash and returns an ECDSA signature in DER. Ethereum also needs a low s (EIP-2) and
 * the parity. Both are computed here, which also verifies the signature.
 */
import { createPublicKey } from "node:crypto";
import { Agent } from "undici";
import type { Address, Hex } from "../../../../domain/lane.ts";
import type { MessageToSign } from "../../../../domain/messages/message.ts";
import { codeOf, messageOf } from "../../../../domain/text/thrown.ts";
import type { UnsignedTransaction } from "../../../../domain/transaction/transaction.ts";
import type { Clock } from "../../../../ports/clock.ts";
import { type SignedTransaction, SignerAway, SigningRefused } from "../../../../ports/signer.ts";
import { addressOf, BadKey, type Warn } from "../private-keys.ts";
import { CURVE_ORDER, HALF_ORDER, isSignedBy, wrongAnswer } from "../recovery.ts";
import { encodeTransaction, signDigest, signTransaction } from "../worker/serialise.js";

export type RemoteKey = ReturnType<typeof remoteKey>;

/** Number of concurrent signing requests: a key service takes tens of milliseconds for each, and limits the rate. */
const AT_ONCE = 16;

/** Signing functions of a key outside this process. Each signs one transaction or one message. */
interface SignsOne {
  transaction(transaction: UnsignedTransaction): Promise<SignedTransaction>;
  message(message: MessageToSign): Promise<Hex>;
}

export function remoteKey(address: Address, { transaction: signOne, message: signMessage }: SignsOne) {
  return {
    address,
    /**
     * Signs transactions, several at once, and returns them in order. If one fails, the error contains the signatures
     * of the transactions before it.
     */
    async sign(transactions: readonly UnsignedTransaction[]): Promise<readonly SignedTransaction[]> {
      const { done, failure } = await severalAtOnce(transactions, signOne);
      if (failure !== null) throw withSigned(failure.reason, done);
      return done;
    },
    /** Signs messages, several at once, and returns the signatures in order. */
    async signMessages(messages: readonly MessageToSign[]): Promise<readonly Hex[]> {
      const { done, failure } = await severalAtOnce(messages, signMessage);
      if (failure === null) return done;
      const { reason } = failure;
      throw reason instanceof SigningRefused ? new SigningRefused(done.length, reason.message) : withSigned(reason);
    },
  };
}

/** Results up to the first failure. Requests of the same round are made even if an earlier one fails. */
async function severalAtOnce<I, O>(items: readonly I[], work: (item: I) => Promise<O>) {
  const done: O[] = [];
  for (let from = 0; from < items.length; from += AT_ONCE) {
    for (const answer of await Promise.allSettled(items.slice(from, from + AT_ONCE).map(work))) {
      if (answer.status === "rejected") return { done, failure: answer };
      done.push(answer.value);
    }
  }
  return { done, failure: null };
}

function withSigned(cause: unknown, signed: readonly SignedTransaction[] = []) {
  return new SignerAway(messageOf(cause), { signed, lies: cause instanceof SignerAway && cause.lies, cause });
}

export interface KeyService {
  /** Name of the key in messages, such as "AWS KMS key alias/hot". */
  readonly name: string;
  /** Public key as SubjectPublicKeyInfo: DER, or PEM text. */
  publicKey(): Promise<Uint8Array | string>;
  /** Signs a hash; returns the signature in DER. */
  signHash(hash: Uint8Array): Promise<Uint8Array>;
}

/** Opens every key of one service, or none. */
export function openKeys(ports: SignerPorts, services: (ports: ServicePorts) => readonly KeyService[]) {
  const http = openServiceHttp(ports.clock);
  return openAll(http, () => Promise.all(services({ ...ports, http }).map(openKey)));
}

/** Opens keys, and closes the HTTP connections if one of them cannot be opened. */
export async function openAll(http: Pick<ServiceHttp, "close">, open: () => Promise<readonly RemoteKey[]>) {
  try {
    return { keys: await open(), close: () => http.close() };
  } catch (error) {
    await http.close();
    throw error;
  }
}

const RENEW_AHEAD_MS = 5 * 60_000;

/**
 * Caches a credential until five minutes before `untilMs`, the monotonic time at which it expires. A fetch that failed
 * is repeated at the next use.
 */
export function renewed<T extends { readonly untilMs: number }>(clock: Clock, fetch: () => Promise<T>) {
  let known: Promise<T> | null = null;
  return async () => {
    const current = await known?.catch(() => null);
    if (known === null || (current?.untilMs ?? 0) - clock.monotonicMs() < RENEW_AHEAD_MS) known = fetch();
    return known;
  };
}

async function openKey({ name, publicKey, signHash }: KeyService): Promise<RemoteKey> {
  const address = addressOf(pointOf(name, await named(name, publicKey())));
  const sign = async (hash: Uint8Array) =>
    provenScalars(name, address, hash, parseDer(name, await named(name, signHash(hash))));
  return remoteKey(address, {
    transaction: (transaction) => signTransaction(encodeTransaction(transaction), sign),
    message: ({ digest }) => signDigest(digest, sign),
  });
}

/** Names the key in errors of the connection and of the credentials, which only name a host or nothing. */
async function named<T>(name: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    const isNamed = !(cause instanceof SignerAway) || cause.message.startsWith(name);
    throw isNamed ? cause : new SignerAway(`${name}: ${cause.message}`, { cause });
  }
}

/** Returns the public key's point, 65 bytes. A key on another curve than secp256k1 is a configuration error. */
function pointOf(name: string, key: Uint8Array | string): Buffer {
  const spki = typeof key === "string" ? key : ({ key: Buffer.from(key), format: "der", type: "spki" } as const);
  try {
    const { crv, x = "", y = "" } = createPublicKey(spki).export({ format: "jwk" });
    if (crv !== "secp256k1") throw new Error(`the key's curve is ${crv ?? "none"}`);
    return Buffer.concat([Buffer.of(4), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
  } catch (cause) {
    throw new BadKey(`${name} has no public key of secp256k1 (${messageOf(cause)})`, { cause });
  }
}

/**
 * Completes and verifies a signature. Both s and n − s are valid; nodes accept only the lower one (EIP-2). The parity
 * is found by trying 0 and 1.
 */
async function provenScalars(name: string, address: Address, hash: Uint8Array, [r, s]: Scalars) {
  const [high, low] = [r, s > HALF_ORDER ? CURVE_ORDER - s : s].map((each) => each.toString(16).padStart(64, "0"));
  for (const yParity of [0, 1] as const) {
    const signature = { r: high as string, s: low as string, yParity };
    if (await isSignedBy(address, hash, signature)) return signature;
  }
  throw wrongAnswer(`${name} signed something else, or with another key than that of ${address}`);
}

type Scalars = readonly [r: bigint, s: bigint];

/**
 * Parses a DER signature: SEQUENCE { INTEGER r, INTEGER s } (RFC 3279) without trailing bytes. Both integers are
 * shorter than 128 bytes, so lengths have one byte.
 */
function parseDer(name: string, der: Uint8Array): Scalars {
  const rLength = der[3] ?? 0;
  const sAt = 4 + rLength;
  const sLength = der[sAt + 1] ?? 0;
  const isWhole = der[1] === der.length - 2 && sAt + 2 + sLength === der.length;
  const isSequence = der[0] === 0x30 && der[2] === 2 && der[sAt] === 2;
  if (!isSequence || !isWhole || rLength === 0 || sLength === 0) throw wrongAnswer(`${name} gave no ECDSA signature`);
  const scalars = [integer(der.subarray(4, sAt)), integer(der.subarray(sAt + 2))] as const;
  if (scalars.every((each) => each > 0n && each < CURVE_ORDER)) return scalars;
  throw wrongAnswer(`${name} gave a signature that is none of secp256k1`);
}

const integer = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).toString("hex")}`);

const LONGEST_WORDS = 300;

/** Error with the key service's text. The text is shortened, because it appears in alerts and API responses. */
export function refusal(name: string, status: number, said: string): SignerAway {
  const words = said.replace(/\p{Cc}+/gu, " ").slice(0, LONGEST_WORDS);
  return new SignerAway(`${name} answered ${status}${words === "" ? "" : `: ${words}`}`);
}

export interface ServiceRequest {
  readonly method?: "GET" | "POST" | "PUT";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Timeout of the request; shorter for a server that may not exist. */
  readonly timeoutMs?: number;
}

type ServiceHttp = ReturnType<typeof openServiceHttp>;

export type Environment = Readonly<Record<string, string | undefined>>;

export interface SignerPorts {
  readonly clock: Clock;
  /**
   * Environment variables with regions, credentials and addresses of key services, under the names that the services'
   * own tools read.
   */
  readonly environment: Environment;
  readonly warn?: Warn | undefined;
}

export interface ServicePorts extends SignerPorts {
  readonly http: ServiceHttp;
}

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 256 * 1024;

/** HTTP for the REST interfaces of key services. Redirects are not followed: credentials must reach no other host. */
export function openServiceHttp(clock: Clock) {
  const agent = new Agent({ connections: 16, maxResponseSize: MAX_ANSWER_BYTES, headersTimeout: 0, bodyTimeout: 0 });
  return {
    /**
     * Sends a request and resolves with any status. Throws `SignerAway`, which names only the host, if there is no
     * response.
     */
    async ask({ url, timeoutMs = TIMEOUT_MS, ...options }: ServiceRequest) {
      const deadline = new AbortController();
      const cancelTimer = clock.after(timeoutMs, () => deadline.abort());
      try {
        const { origin, pathname, search } = new URL(url);
        const { signal } = deadline;
        const { statusCode, body } = await agent.request({
          method: "GET",
          ...options,
          origin,
          path: `${pathname}${search}`,
          signal,
        });
        const text = await body.text();
        return { status: statusCode, text, members: membersOf(text) };
      } catch (cause) {
        const failure = `is not reachable (${codeOf(cause) ?? "connection failed"})`;
        const why = deadline.signal.aborted ? `gave no answer in ${timeoutMs} ms` : failure;
        throw new SignerAway(`${new URL(url).origin} ${why}`, { cause });
      } finally {
        cancelTimer();
      }
    },
    close: () => agent.destroy(),
  };
}

/** Members of a JSON object; empty if the text is not a JSON object. */
export function membersOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

export const textOf = (value: unknown) => (typeof value === "string" ? value : "");
