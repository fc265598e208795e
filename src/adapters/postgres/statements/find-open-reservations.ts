import { statement } from "./statement.ts";

/** Open reservations of these lanes, lowest nonce first, with what is left of each by the database's clock. */
export const findOpenReservations = statement<OpenReservationRow>(
  "find-open-reservations",
  `SELECT r.reservation_id, r.chain_id, r.signer, r.nonce, r.expires_at,
     extract(epoch FROM r.expires_at - clock_timestamp())::float8 * 1000 AS left_ms
   FROM fencepost.reservation AS r
   WHERE r.signer = ANY ($1::text[]) AND r.chain_id = ANY ($2::bigint[]) AND r.state = 'RESERVED'
   ORDER BY r.nonce`,
);

export interface OpenReservationRow {
  readonly reservation_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly nonce: number;
  readonly expires_at: Date;
  readonly left_ms: number;
}
