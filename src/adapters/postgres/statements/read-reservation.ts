import type { ReservationRow } from "./find-reservations.ts";
import { statement } from "./statement.ts";

/** One reservation, for whoever asks. */
export const readReservation = statement<ReservationRow>(
  "read-reservation",
  `SELECT r.reservation_id, r.chain_id, r.signer, r.nonce, r.request_id, r.state, r.expires_at, r.tx_id,
     r.expires_at <= clock_timestamp() AS past
   FROM fencepost.reservation AS r
   WHERE r.reservation_id = $1`,
);
