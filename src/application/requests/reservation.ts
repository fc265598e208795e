import { FencepostError, invalid, type RejectionReason } from "../../domain/errors.ts";
import type { Hash, Hex } from "../../domain/lane.ts";
import { LONGEST_TTL_MS, type Reservation } from "../../domain/transaction/reservations.ts";
import { BadEncoding, type Codec, type DecodedTransaction } from "../../ports/codec.ts";
import type { ReserveRequest } from "../api.ts";
import { asObject, parseHash, parseHex, refuseUnknownKeys } from "./fields.ts";
import { type NormalisePorts, parseChainId, parseRequestId, parseSigner } from "./normalise.ts";

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 };

export interface ReserveOrder extends Pick<Reservation, "lane" | "requestId" | "owner"> {
  /** Null: as long as the chain's settings say. */
  readonly ttlMs: number | null;
}

export function parseReserve(ports: NormalisePorts, request: ReserveRequest, owner: string | null): ReserveOrder {
  const body = asObject(request, "");
  refuseUnknownKeys(body, ["chainId", "signer", "ttl", "requestId"], "");
  const signer = parseSigner(ports.codec, body.signer, "signer");
  const requestId = parseRequestId(body.requestId);
  const ttlMs = parseTtl(body.ttl);
  return { lane: { chainId: parseChainId(ports.chainIds, body.chainId), signer }, requestId, owner, ttlMs };
}

/** Seconds, or a duration as in the configuration: "45s", "5m". */
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

/** What the caller signed, checked to be for this very nonce. */
export async function parseSubmission(codec: Codec, request: unknown, reservation: Reservation): Promise<HandedIn> {
  const body = asObject(request, "");
  refuseUnknownKeys(body, ["rawTransaction"], "");
  const rawTransaction = parseHex(body.rawTransaction, "rawTransaction");
  const decoded = await decodeGiven(codec, rawTransaction, (why) => rejected("INVALID_INPUT", `rawTransaction ${why}`));
  const { lane, nonce } = reservation;
  if (decoded.signer !== lane.signer) {
    throw rejected("INVALID_SIGNATURE", `it is signed by ${decoded.signer}, the nonce is reserved for ${lane.signer}`);
  }
  if (decoded.unsigned.chainId !== lane.chainId) {
    throw rejected("INVALID_INPUT", `it is for chain ${decoded.unsigned.chainId}, reserved is chain ${lane.chainId}`);
  }
  if (decoded.unsigned.nonce !== nonce) {
    throw rejected("INVALID_INPUT", `it has nonce ${decoded.unsigned.nonce}, reserved is nonce ${nonce}`);
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
