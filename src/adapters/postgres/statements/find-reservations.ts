import { statement } from "./statement.ts";

/**
 * The reservations that a commit is about, by their own id or by the caller's, whatever the lane: the planner drops what it did not mean. Whether one is past is judged here, behind
 * the lane's lock, by the database's clock: `now()` would be the moment the transaction began to wait.
 */
export const findReservations = statement<ReservationRow>(
  "find-reservations",
  `SELECT r.reservation_id, r.chain_id, r.signer, r.nonce, r.request_id, r.state, r.expires_at, r.tx_id,
     r.expires_at <= clock_timestamp() AS past
   FROM fencepost.reservation AS r
   WHERE r.reservation_id = ANY ($1::uuid[])
   UNION ALL
   SELECT r.reservation_id, r.chain_id, r.signer, r.nonce, r.request_id, r.state, r.expires_at, r.tx_id,
     r.expires_at <= clock_timestamp() AS past
   FROM fencepost.reservation AS r
   WHERE r.request_id = ANY ($2::text[]) AND r.request_id IS NOT NULL`,
);

export interface ReservationRow {
  readonly reservation_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly nonce: number;
  readonly request_id: string | null;
  readonly state: string;
  readonly expires_at: Date;
  readonly tx_id: string | null;
  readonly past: boolean;
}
