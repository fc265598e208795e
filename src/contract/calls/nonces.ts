import { type Static, Type } from "typebox";
import { RESERVATION_STATES } from "../../domain/transaction/reservations.ts";
import { CreatedTransaction } from "../schemas/create.ts";
import { Address, ChainId, Hash, hex, Nonce, Owner, RequestId, STORY, Timestamp, TxId } from "../schemas/scalars.ts";
import { closed, described, MOSTLY_NULL, nullable, oneOf } from "../schemas/shapes.ts";
import { type CallScope, declared, ok, READ, TRANSACTION_PLACE } from "./call.ts";

/** API calls that reserve nonces for callers that sign themselves. */

const ReservationId = described(TxId, "Fencepost's own id of a reservation.");

const TimeToLive = Type.Unsafe<number | `${number}${"ms" | "s" | "m"}`>({
  anyOf: [{ type: "number" }, { type: "string" }],
  description: "Seconds, or a duration such as `45s` or `5m`; at most ten minutes.",
  examples: ["60s"],
});

export const ReserveNonce = closed(
  "ReserveNonce",
  { examples: [{ signer: STORY.signer, ttl: "60s", requestId: "payout-7" }] },
  {
    chainId: Type.Optional(ChainId),
    signer: Address,
    ttl: Type.Optional(TimeToLive),
    requestId: Type.Optional(RequestId),
  },
);
export type ReserveNonce = Static<typeof ReserveNonce>;

export const NonceReservation = closed("NonceReservation", {
  reservationId: ReservationId,
  chainId: ChainId,
  signer: Address,
  nonce: Nonce,
  requestId: nullable(RequestId),
  owner: nullable(Owner),
  expiresAt: Timestamp,
  state: oneOf(RESERVATION_STATES),
  txId: nullable(TxId, MOSTLY_NULL),
});
export type NonceReservation = Static<typeof NonceReservation>;

export const SubmitReserved = closed("SubmitReserved", {
  rawTransaction: hex({
    pattern: "^0x([0-9a-fA-F]{2})+$",
    description: "Signed for this signer, chain and nonce; any type, blob and delegation transactions too.",
    examples: ["0x02f8730182a4b1"],
  }),
});
export type SubmitReserved = Static<typeof SubmitReserved>;

export const UseReserved = closed("UseReserved", { txHash: Hash });
export type UseReserved = Static<typeof UseReserved>;

/** A key may use its own reservations; those of other keys need `operate`. */
const OWN: CallScope = { scope: "operate", own: "reserve" };

/** Maximum body size: a raw transaction may contain six blobs, in hex, with their proofs. */
const RAW_BYTES = 2 * 1024 * 1024;

const reserved = {
  schema: NonceReservation,
  location: { path: "/api/v1/nonces/{reservationId}", description: "Path of the reservation." },
};
const tracked = { schema: CreatedTransaction, example: { state: "TRACKING" }, location: TRANSACTION_PLACE };

export const nonces = declared({
  reserveNonce: {
    at: "post /api/v1/nonces",
    scope: { scope: "reserve" },
    by: "owner",
    face: "reserveNonce",
    summary: "Reserve a nonce to sign with yourself",
    description:
      "Kept until `expiresAt`; then hand in what you signed, name the hash you sent, or release it. Only a release makes the nonce free again. Repeat it with the same requestId as often as you like: there will be one reservation.",
    body: ReserveNonce,
    metered: true,
    answers: {
      201: { description: "Reserved.", ...reserved },
      200: {
        description: "The same request had reserved before; this is its reservation, in whatever state.",
        ...reserved,
      },
    },
    errors: ["NOT_LEADER", "QUOTA_EXCEEDED", "REQUEST_ID_REUSED", "UNKNOWN_SIGNER", "UNKNOWN_CHAIN"],
  },
  getReservation: {
    at: "get /api/v1/nonces/{reservationId}",
    scope: READ,
    face: "reservation",
    summary: "Read a reservation",
    answers: ok("It.", NonceReservation),
    errors: ["NOT_FOUND"],
  },
  submitReserved: {
    at: "post /api/v1/nonces/{reservationId}/submit",
    scope: OWN,
    by: "owner",
    face: "submitReserved",
    summary: "Hand in what you signed",
    description: "From there it is a transaction like any other: stored, sent, sent again and followed to finality.",
    body: SubmitReserved,
    bodyBytes: RAW_BYTES,
    answers: { 202: { description: "Accepted.", ...tracked } },
    errors: ["NOT_FOUND", "NOT_LEADER", "CONFLICT", "SUBMISSION_REJECTED"],
  },
  useReserved: {
    at: "post /api/v1/nonces/{reservationId}/used",
    scope: OWN,
    by: "owner",
    face: "markUsed",
    summary: "Name the transaction you sent yourself",
    description: "It is followed by its hash; it cannot be sent again from here.",
    body: UseReserved,
    answers: { 202: { description: "Followed.", ...tracked } },
    errors: ["NOT_FOUND", "NOT_LEADER", "CONFLICT", "SUBMISSION_REJECTED"],
  },
  releaseReserved: {
    at: "post /api/v1/nonces/{reservationId}/release",
    scope: OWN,
    by: "owner",
    face: "releaseNonce",
    summary: "Give the nonce back: nothing was signed with it",
    answers: { 200: { description: "Released.", schema: NonceReservation, example: { state: "RELEASED" } } },
    errors: ["NOT_FOUND", "NOT_LEADER", "CONFLICT"],
  },
});
