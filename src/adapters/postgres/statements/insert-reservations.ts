import { statement } from "./statement.ts";

/** Plain inserts: a nonce or a request id that is reserved already must end the commit. */
export const insertReservations = statement<unknown>(
  "insert-reservations",
  `INSERT INTO fencepost.reservation (reservation_id, chain_id, signer, nonce, request_id, created_at, expires_at)
   SELECT reservation_id, chain_id, signer, nonce, request_id, now(), expires_at
   FROM json_to_recordset($1::json) AS r(
     reservation_id uuid, chain_id bigint, signer text, nonce bigint, request_id text, expires_at timestamptz
   )`,
);
