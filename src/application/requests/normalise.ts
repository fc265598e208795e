/**
 * Stage 1, first half: normalises a request from a caller or from another node. Reads: the request alone. Writes:
 * nothing. Invariant: a mistake is named by the path of its field and consumes nothing. A crash here leaves nothing
 * behind; the caller has no answer and repeats.
 */
import { defined } from "../../domain/defined.ts";
import { FencepostError, invalid, type RejectionReason } from "../../domain/errors.ts";
import { type CreateLimits, isQueueShare, refuseOutside } from "../../domain/keys/principal.ts";
import type { Address, Hash, Hex } from "../../domain/lane.ts";
import { POOL_NAME, type PoolAsked } from "../../domain/nonces/pool.ts";
import { fingerprint } from "../../domain/transaction/fingerprint.ts";
import { LONGEST_TTL_MS, type Reservation } from "../../domain/transaction/reservations.ts";
import { CREATE_FIELDS, type Intent } from "../../domain/transaction/transaction.ts";
import type { Clock } from "../../ports/clock.ts";
import { BadEncoding, type Codec, type DecodedTransaction } from "../../ports/codec.ts";
import type { ForwardedCreate } from "../../ports/peers.ts";
import type { Ports } from "../../ports/ports.ts";
import type { CreateRequest, ReserveRequest } from "../api.ts";
import {
  asObject,
  given,
  normalisePayload,
  PAYLOAD_FIELDS,
  parseAddress,
  parseAllowNoCode,
  parseHash,
  parseHex,
  parseQuantity,
  refuseUnknownKeys,
} from "./fields.ts";

export interface NormalisePorts extends Pick<Ports, "codec" | "entropy"> {
  /** Configured chains; if there is only one, it is the default. */
  readonly chainIds: readonly number[];
  /**
   * True if another live node serves this chain. The chain is then not reported as unknown, although it is not
   * configured here.
   */
  readonly isServedElsewhere?: (chainId: number) => boolean;
  /** Clock that bounds how far ahead a `validUntil` may be; if absent, there is no bound. */
  readonly clock?: Pick<Clock, "now">;
}

const MAX_METADATA_BYTES = 8 * 1024;
const MAX_REQUEST_ID_CHARACTERS = 255;
/** A request id of visible ASCII characters, which any database can store: the common case, checked quickly. */
const USUAL_REQUEST_ID = /^[ -~]{1,255}$/;

/**
 * Values that are not read from the caller's request: the transaction id, if another node assigned it, and the API key.
 */
export interface Naming {
  readonly txId?: string | undefined;
  readonly owner?: string | null | undefined;
  /** The chosen signer, if the request names a pool. */
  readonly chosen?: Address | undefined;
  /** Limits of the API key; absent if another node has already checked them. */
  readonly limits?: CreateLimits | undefined;
}

/**
 * `parsed`: the pool that the request names, or null if it names none. Absent if the request was not yet parsed for a
 * pool.
 */
export function normalise(
  ports: NormalisePorts,
  request: CreateRequest,
  naming: Naming = {},
  parsed?: PoolAsked | null,
): Intent {
  const { txId = ports.entropy.uuid(), owner = null, chosen = null } = naming;
  const body = asObject(request, "");
  refuseUnknownKeys(body, CREATE_FIELDS, "", PAYLOAD_FIELDS);
  const pool = parsed === undefined ? parsePool(body.signer) : parsed;
  if (pool !== null && chosen === null) throw invalid("signer", POOL_ELSEWHERE);
  const signer = (pool && chosen) ?? parseSigner(ports.codec, body.signer, "signer");
  const from = pool === null ? {} : { pool: pool.pool };
  const requestId = parseRequestId(body.requestId);
  const payload = normalisePayload(ports.codec, body.payload);
  const words = wordsOf(body, ports, from);
  const chainId = parseChainId(ports.chainIds, body.chainId, ports.isServedElsewhere);
  const lane = { chainId, signer };
  if (naming.limits !== undefined) refuseOutside(naming.limits, lane);
  return { txId, lane, requestId, owner, payload, fingerprint: fingerprint(payload, words), ...from, ...words };
}

type Words = Pick<Intent, "metadata" | "allowNoCode" | "exactNonce" | "validUntil">;

/** The caller's fields beside the payload; missing ones stay absent. */
function wordsOf(body: CreateRequest, ports: NormalisePorts, from: { readonly pool?: string }): Words {
  return {
    metadata: parseMetadata(body.metadata),
    ...defined({
      validUntil: parseValidUntil(body.validUntil, ports.clock ?? null),
      allowNoCode: parseAllowNoCode(body.allowNoCode) || undefined,
      exactNonce: given(body.nonce, (nonce) => parseNonce(nonce, from)),
    }),
  };
}

/**
 * EIP-2681: the highest nonce, 2^64 - 1, cannot be used. JSON carries whole numbers up to 2^53 - 1, which no account
 * reaches.
 */
function parseNonce(value: unknown, from: { readonly pool?: string }) {
  if (from.pool !== undefined) throw invalid("nonce", "belongs to one signer: name the signer instead of a pool");
  return Number(parseQuantity(value, "nonce", BigInt(Number.MAX_SAFE_INTEGER - 1)));
}

export function parseSigner(codec: Codec, value: unknown, path: string): Address {
  if (typeof value !== "string") throw invalid(path, "an address is required: 0x and 40 hex digits");
  return parseAddress(codec, value, path);
}

export function parseChainId(
  chainIds: readonly number[],
  value: unknown,
  isServedElsewhere: (chainId: number) => boolean = () => false,
): number {
  if (value === undefined) {
    const [only, ...others] = chainIds;
    if (only === undefined || others.length > 0)
      throw invalid("chainId", `is required, because several chains are configured: ${chainIds.join(", ")}`);
    return only;
  }
  const chainId =
    typeof value === "string" && /^(0x[0-9a-f]{1,13}|[1-9][0-9]{0,15})$/i.test(value) ? Number(value) : value;
  if (typeof chainId !== "number" || !Number.isSafeInteger(chainId) || chainId < 1) {
    throw invalid("chainId", "must be a positive integer");
  }
  if (!chainIds.includes(chainId) && !isServedElsewhere(chainId)) {
    const detail = `chain ${chainId} is not configured on this node (configured: ${chainIds.join(", ")})`;
    throw new FencepostError("UNKNOWN_CHAIN", detail);
  }
  return chainId;
}

export function parseRequestId(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") throw invalid("requestId", "must be a string");
  if (USUAL_REQUEST_ID.test(value)) return value;
  const characters = [...value].length;
  if (characters < 1 || characters > MAX_REQUEST_ID_CHARACTERS) {
    throw invalid("requestId", `must have 1 to ${MAX_REQUEST_ID_CHARACTERS} characters, has ${characters}`);
  }
  // Control characters, lone surrogates and line separators are invisible, or PostgreSQL cannot store them.
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(value))
    throw invalid("requestId", "must be printable: no control characters, no line separators");
  return value;
}

/**
 * Serializes metadata. A caller inside the process may pass anything: a bigint, a circular structure, an object with
 * its own `toJSON`.
 */
function jsonOf(metadata: object, path: string) {
  try {
    const text: string | undefined = JSON.stringify(metadata);
    if (text !== undefined) return text;
  } catch {
    // The value is circular, contains a bigint, or is nested deeper than the stack allows.
  }
  throw invalid(path, "must be JSON");
}

/** Parses an object of the caller that is stored unchanged: `metadata`, or `audit` of an operator's action. */
export function parseMetadata(value: unknown, path = "metadata"): Intent["metadata"] {
  if (value === undefined || value === null) return null;
  const metadata = asObject(value, path);
  const text = jsonOf(metadata, path);
  if (Buffer.byteLength(text) > MAX_METADATA_BYTES) throw invalid(path, "must be at most 8 KiB of JSON");
  // PostgreSQL's jsonb stores neither NUL nor a lone surrogate; JSON.stringify writes both as escapes.
  if (/(?<!\\)(\\\\)*\\u(0000|d[89a-f][0-9a-f]{2})/i.test(text)) {
    throw invalid(path, "must not contain NUL or unpaired surrogates");
  }
  return metadata;
}

const POOL_ELSEWHERE =
  "names a pool, of which a node chooses a signer as it takes a transaction in (POST /tx, or send without { client }); name a signer here";
/** A sticky key: visible characters only, as in a request id. */
const STICKY_KEY = /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,255}$/u;

/** Parses `{ pool, stickyKey? }`, given in place of a signer; null if `signer` is no object. */
export function parsePool(signer: unknown): PoolAsked | null {
  if (typeof signer !== "object" || signer === null) return null;
  const { pool, stickyKey = null, ...rest } = asObject(signer, "signer");
  refuseUnknownKeys(rest, [], "signer");
  if (typeof pool !== "string") throw invalid("signer.pool", "the name of a pool is required");
  if (!POOL_NAME.test(pool)) throw invalid("signer.pool", "is not the name of a pool (letters, digits, . _ and -)");
  if (stickyKey !== null && (typeof stickyKey !== "string" || !STICKY_KEY.test(stickyKey))) {
    throw invalid("signer.stickyKey", "must be 1 to 255 printable characters");
  }
  return { pool, stickyKey };
}

const A_DAY_MS = 86_400_000;
/** Maximum number of days ahead: a later time usually means that milliseconds were given as seconds. */
const MOST_DAYS = 366;

/** A time with its UTC offset: a local time would mean another instant on another machine. */
const INSTANT = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

const EXPECTED = 'must be an instant as in ISO 8601, with its offset, such as "2026-01-31T12:00:00Z"';

/**
 * Parses `validUntil`; `clock` limits how far ahead it may be. Whether it has passed is decided when the nonce is
 * allocated, by the database's clock and after the look-up of the request id: a repeat of a create that was accepted in
 * time is answered, however late it arrives.
 */
export function parseValidUntil(value: unknown, clock: Pick<Clock, "now"> | null): Date | undefined {
  if (value === undefined || value === null) return undefined;
  const at = parseInstant(value, "validUntil");
  if (clock !== null && at.getTime() - clock.now().getTime() > MOST_DAYS * A_DAY_MS) {
    throw invalid("validUntil", `must be at most ${MOST_DAYS} days ahead`);
  }
  return at;
}

/** Parses an instant: a Date, or ISO 8601 with an offset. */
export function parseInstant(value: unknown, path: string): Date {
  const at = value instanceof Date ? value : instantOf(value, path);
  if (Number.isNaN(at.getTime())) throw invalid(path, EXPECTED);
  return at;
}

function instantOf(value: unknown, path: string) {
  const [text, year, month, day] = (typeof value === "string" ? INSTANT.exec(value) : null) ?? [];
  if (text === undefined) throw invalid(path, EXPECTED);
  // Date accepts day 31 in any month and rolls over into the next.
  const daysOfMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  if (Number(day) > daysOfMonth) throw invalid(path, EXPECTED);
  return new Date(text);
}

/** Forms of transaction ids and addresses in requests between nodes, which are already normalised. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ADDRESS = /^0x[0-9a-f]{40}$/;

/** Reads one create from another node. The caller's request in it is validated later, like any other. */
export function readForwardedCreate(item: unknown, path: string): ForwardedCreate {
  const { txId, owner, queueShare, chosen, request } = asObject(item, path);
  if (typeof txId !== "string" || !UUID.test(txId)) throw invalid(`${path}.txId`, "must be a UUID");
  const given = asObject(request, `${path}.request`);
  if (queueShare !== undefined && !isQueueShare(queueShare)) {
    throw invalid(`${path}.queueShare`, "must be a share above 0 and up to 1");
  }
  if (chosen !== undefined && !(typeof chosen === "string" && ADDRESS.test(chosen))) {
    throw invalid(`${path}.chosen`, "must be an address");
  }
  const said = defined({ queueShare, chosen: chosen as Address | undefined });
  return { txId, owner: readOwner(owner, `${path}.owner`), ...said, request: given };
}

/** The name of the caller's API key on the node that received the request; null if none was required. */
export function readOwner(value: unknown, path: string): string | null {
  if (value === undefined) return null;
  if (typeof value !== "string" || value === "") throw invalid(path, "must be the name of an API key");
  return value;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };

export interface ReserveIntent extends Pick<Reservation, "lane" | "requestId" | "owner"> {
  /** Time to live of the reservation in ms; null for the chain's default. */
  readonly ttlMs: number | null;
}

export function parseReserve(ports: NormalisePorts, request: ReserveRequest, owner: string | null): ReserveIntent {
  const body = asObject(request, "");
  refuseUnknownKeys(body, ["chainId", "signer", "ttl", "requestId"], "");
  const signer = parseSigner(ports.codec, body.signer, "signer");
  const requestId = parseRequestId(body.requestId);
  const ttlMs = parseTtl(body.ttl);
  return { lane: { chainId: parseChainId(ports.chainIds, body.chainId), signer }, requestId, owner, ttlMs };
}

/** Parses seconds, or a duration as in the configuration: "45s", "5m". */
function parseTtl(value: unknown) {
  if (value === undefined || value === null) return null;
  const [, digits, unit] = typeof value === "string" ? (/^(\d{1,7})(ms|s|m)$/.exec(value) ?? []) : [];
  const ms = typeof value === "number" ? value * 1_000 : Number(digits) * (UNITS[unit ?? ""] ?? Number.NaN);
  if (!Number.isFinite(ms) || ms < 1) throw invalid("ttl", 'must be seconds, or a duration such as "45s" or "5m"');
  if (ms > LONGEST_TTL_MS) throw invalid("ttl", "must be at most ten minutes");
  return Math.round(ms);
}

export interface HandedIn extends DecodedTransaction {
  readonly rawTransaction: Hex;
}

/** Parses the caller's signed transaction and checks that it is for the reserved nonce. */
export async function parseSubmission(codec: Codec, request: unknown, reservation: Reservation): Promise<HandedIn> {
  const body = asObject(request, "");
  refuseUnknownKeys(body, ["rawTransaction"], "");
  const rawTransaction = parseHex(body.rawTransaction, "rawTransaction");
  const decoded = await decodeGiven(codec, rawTransaction, (why) => rejected("INVALID_INPUT", `rawTransaction ${why}`));
  const { lane, nonce } = reservation;
  if (decoded.signer !== lane.signer) {
    throw rejected("INVALID_SIGNATURE", `rawTransaction is signed by ${decoded.signer}, not by ${lane.signer}`);
  }
  if (decoded.unsigned.chainId !== lane.chainId) {
    throw rejected("INVALID_INPUT", `rawTransaction is for chain ${decoded.unsigned.chainId}, not ${lane.chainId}`);
  }
  if (decoded.unsigned.nonce !== nonce) {
    throw rejected("INVALID_INPUT", `rawTransaction has nonce ${decoded.unsigned.nonce}, but ${nonce} is reserved`);
  }
  return { ...decoded, rawTransaction };
}

export function parseUsed(request: unknown): Hash {
  const body = asObject(request, "");
  refuseUnknownKeys(body, ["txHash"], "");
  return parseHash(body.txHash, "txHash");
}

export async function decodeGiven(
  codec: Pick<Codec, "decodeTransaction">,
  rawTransaction: Hex,
  refusal: (why: string) => Error,
): Promise<DecodedTransaction> {
  try {
    return await codec.decodeTransaction(rawTransaction);
  } catch (error) {
    if (error instanceof BadEncoding) throw refusal(error.message);
    throw error;
  }
}

export function rejected(reason: RejectionReason, detail: string): FencepostError {
  return new FencepostError("SUBMISSION_REJECTED", detail, { reason });
}
