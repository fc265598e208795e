import { type Static, Type } from "typebox";
import { RESERVATION_STATES } from "../domain/reservations.ts";
import { Address, ChainId, Hash, Nonce, nullable, oneOf, RequestId, Timestamp, TxId } from "./scalars.ts";

/** Nonces for callers that sign themselves. */

const ReservationId = Type.String({ format: "uuid", description: "Fencepost's own id of a reservation." });

export const ReserveNonce = Type.Object(
  {
    chainId: Type.Optional(ChainId),
    signer: Address,
    ttl: Type.Optional(
      Type.Unsafe<number | string>({
        anyOf: [{ type: "number" }, { type: "string" }],
        description: "Seconds, or a duration such as `45s` or `5m`; at most ten minutes.",
        examples: ["60s"],
      }),
    ),
    requestId: Type.Optional(RequestId),
  },
  { title: "ReserveNonce", additionalProperties: false },
);
export type ReserveNonce = Static<typeof ReserveNonce>;

export const NonceReservation = Type.Object(
  {
    reservationId: ReservationId,
    chainId: ChainId,
    signer: Address,
    nonce: Nonce,
    requestId: nullable(RequestId),
    expiresAt: Timestamp,
    state: oneOf(RESERVATION_STATES),
    txId: nullable(TxId),
  },
  { title: "NonceReservation", additionalProperties: false },
);
export type NonceReservation = Static<typeof NonceReservation>;

export const SubmitReserved = Type.Object(
  {
    rawTransaction: Type.String({
      pattern: "^0x([0-9a-fA-F]{2})+$",
      description: "Signed for this signer, chain and nonce; any type, blob and delegation transactions too.",
    }),
  },
  { title: "SubmitReserved", additionalProperties: false },
);
export type SubmitReserved = Static<typeof SubmitReserved>;

export const UseReserved = Type.Object({ txHash: Hash }, { title: "UseReserved", additionalProperties: false });
export type UseReserved = Static<typeof UseReserved>;
