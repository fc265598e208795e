import { statement } from "./statement.ts";

/** Moves reservations on, each only from the state it was read in. */
export const settleReservations = statement<unknown>(
  "settle-reservations",
  `WITH settled AS (
     UPDATE fencepost.reservation AS r
     SET state = s.state, tx_id = s.tx_id
     FROM json_to_recordset($1::json) AS s(reservation_id uuid, from_state text, state text, tx_id uuid)
     WHERE r.reservation_id = ANY ($2::uuid[]) AND r.reservation_id = s.reservation_id AND r.state = s.from_state
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM settled), $3, 'settled reservations')`,
);
