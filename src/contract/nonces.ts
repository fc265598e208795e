import { type Static, Type } from "typebox";
import { RESERVATION_STATES } from "../domain/reservations.ts";
import { Address, ChainId, Hash, Nonce, Owner, RequestId, Timestamp, TxId } from "./scalars.ts";
import { closed, nullable, oneOf } from "./shapes.ts";

/** Nonces for callers that sign themselves. */

const ReservationId = Type.String({ format: "uuid", description: "Fencepost's own id of a reservation." });

const TimeToLive = Type.Unsafe<number | string>({
  anyOf: [{ type: "number" }, { type: "string" }],
  description: "Seconds, or a duration such as `45s` or `5m`; at most ten minutes.",
  examples: ["60s"],
});

export const ReserveNonce = closed("ReserveNonce", {
  chainId: Type.Optional(ChainId),
  signer: Address,
  ttl: Type.Optional(TimeToLive),
  requestId: Type.Optional(RequestId),
});
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
  txId: nullable(TxId),
});
export type NonceReservation = Static<typeof NonceReservation>;

export const SubmitReserved = closed("SubmitReserved", {
  rawTransaction: Type.String({
    pattern: "^0x([0-9a-fA-F]{2})+$",
    description: "Signed for this signer, chain and nonce; any type, blob and delegation transactions too.",
  }),
});
export type SubmitReserved = Static<typeof SubmitReserved>;

export const UseReserved = closed("UseReserved", { txHash: Hash });
export type UseReserved = Static<typeof UseReserved>;
