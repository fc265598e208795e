import { CreatedTransaction } from "./create.ts";
import * as examples from "./examples.ts";
import { NonceReservation, ReserveNonce, SubmitReserved, UseReserved } from "./nonces.ts";
import type { Route } from "./routes.ts";
import { TxId } from "./scalars.ts";

const params = { reservationId: TxId };
const TRANSACTION = { Location: "Path of the transaction." };

export const nonceRoutes: readonly Route[] = [
  {
    operationId: "reserveNonce",
    method: "post",
    path: "/api/v1/nonces",
    tag: "Nonces",
    summary: "Reserve a nonce to sign with yourself",
    description:
      "Kept until `expiresAt`; then hand in what you signed, name the hash you sent, or release it. Only a release makes the nonce free again. Repeat it with the same requestId as often as you like: there will be one reservation.",
    body: { schema: ReserveNonce, examples: { reserve: examples.reserveNonce } },
    responses: {
      201: {
        description: "Reserved.",
        schema: NonceReservation,
        example: examples.nonceReservation,
        headers: { Location: "Path of the reservation." },
      },
      200: {
        description: "The same request had reserved before; this is its reservation, in whatever state.",
        schema: NonceReservation,
        example: examples.nonceReservation,
        headers: { Location: "Path of the reservation." },
      },
    },
    errors: ["INVALID_REQUEST", "NOT_LEADER", "REQUEST_ID_REUSED", "UNKNOWN_SIGNER", "UNKNOWN_CHAIN"],
  },
  {
    operationId: "getReservation",
    method: "get",
    path: "/api/v1/nonces/{reservationId}",
    tag: "Nonces",
    summary: "Read a reservation",
    params,
    responses: { 200: { description: "It.", schema: NonceReservation, example: examples.nonceReservation } },
    errors: ["INVALID_REQUEST", "NOT_FOUND"],
  },
  {
    operationId: "submitReserved",
    method: "post",
    path: "/api/v1/nonces/{reservationId}/submit",
    tag: "Nonces",
    summary: "Hand in what you signed",
    description: "From there it is a transaction like any other: stored, sent, sent again and followed to finality.",
    params,
    body: { schema: SubmitReserved, examples: { signed: examples.submitReserved } },
    responses: {
      202: {
        description: "Accepted.",
        schema: CreatedTransaction,
        example: examples.trackedTransaction,
        headers: TRANSACTION,
      },
    },
    errors: ["INVALID_REQUEST", "NOT_FOUND", "NOT_LEADER", "CONFLICT", "PAYLOAD_TOO_LARGE", "SUBMISSION_REJECTED"],
  },
  {
    operationId: "useReserved",
    method: "post",
    path: "/api/v1/nonces/{reservationId}/used",
    tag: "Nonces",
    summary: "Name the transaction you sent yourself",
    description: "It is followed by its hash; it cannot be sent again from here.",
    params,
    body: { schema: UseReserved, examples: { sent: examples.useReserved } },
    responses: {
      202: {
        description: "Followed.",
        schema: CreatedTransaction,
        example: examples.trackedTransaction,
        headers: TRANSACTION,
      },
    },
    errors: ["INVALID_REQUEST", "NOT_FOUND", "NOT_LEADER", "CONFLICT", "SUBMISSION_REJECTED"],
  },
  {
    operationId: "releaseReserved",
    method: "post",
    path: "/api/v1/nonces/{reservationId}/release",
    tag: "Nonces",
    summary: "Give the nonce back: nothing was signed with it",
    params,
    responses: {
      200: { description: "Released.", schema: NonceReservation, example: examples.releasedNonce },
    },
    errors: ["INVALID_REQUEST", "NOT_FOUND", "NOT_LEADER", "CONFLICT"],
  },
];
