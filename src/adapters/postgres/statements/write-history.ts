import { statement } from "./statement.ts";

/** Appends steps. One that repeats the last is counted there: who, why and when of the newest are kept. */
export const writeHistory = statement<unknown>(
  "write-history",
  `INSERT INTO fencepost.history AS h (
     tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count,
     first_at, last_at
   )
   SELECT tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count,
     coalesce(at, now()), coalesce(at, now())
   FROM json_to_recordset($1::json) AS s(
     tx_id uuid, ordinal integer, chain_id bigint, event text, from_state text, state text, sub_state text,
     node_id text, token bigint, reason text, actor text, audit jsonb, count integer, at timestamptz
   )
   ON CONFLICT (tx_id, ordinal) DO UPDATE
   SET count = h.count + excluded.count,
     node_id = excluded.node_id,
     token = excluded.token,
     reason = excluded.reason,
     last_at = excluded.last_at`,
);
