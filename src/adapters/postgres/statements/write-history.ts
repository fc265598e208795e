import { statement } from "./statement.ts";

/**
 * Appends steps. The ordinal of each was worked out behind the lane's lock: one that exists must be loud and end the
 * commit. $1 to $14, a place for each step; a column that no step has anything in is null.
 *
 * Lists of columns, because taking JSON apart is a third of what the server does for such small rows.
 */
export const writeHistory = statement<unknown>(
  "write-history",
  `INSERT INTO fencepost.history (
     tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count,
     first_at, last_at
   )
   SELECT tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count,
     coalesce(at, now()), coalesce(at, now())
   FROM unnest(
     $1::uuid[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
     $10::text[], $11::text[], $12::jsonb[], $13::integer[], $14::timestamptz[]
   ) AS s(
     tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count, at
   )`,
);
