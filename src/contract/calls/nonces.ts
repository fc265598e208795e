import { CreatedTransaction } from "../create.ts";
import { NonceReservation, ReserveNonce, SubmitReserved, UseReserved } from "../nonces.ts";
import { type CallScope, declared, READ, TRANSACTION_PLACE } from "./call.ts";

/** One's own reservation; anybody else's is an operator's. */
const OWN: CallScope = { scope: "operate", own: "reserve" };

/** Blobs travel in the raw transaction: six of them, in hex, with their proofs. */
const RAW_BYTES = 2 * 1024 * 1024;

const reserved = {
  schema: NonceReservation,
  location: { path: "/api/v1/nonces/{reservationId}", description: "Path of the reservation." },
};
const tracked = { schema: CreatedTransaction, example: "trackedTransaction", location: TRANSACTION_PLACE };

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
    by: "any node",
    face: "reservation",
    summary: "Read a reservation",
    answers: { 200: { description: "It.", schema: NonceReservation } },
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
    answers: { 200: { description: "Released.", schema: NonceReservation, example: "releasedNonce" } },
    errors: ["NOT_FOUND", "NOT_LEADER", "CONFLICT"],
  },
});
