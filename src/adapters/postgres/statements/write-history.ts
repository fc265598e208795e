import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists(
  "tx_id uuid, ordinal integer, chain_id bigint, event text, from_state text, state text, sub_state text, " +
    "node_id text, token bigint, reason text, actor text, audit jsonb, count integer, at timestamptz",
);

/**
 * Appends steps that do not stand on the row of their transaction (commit/ordinary-life.ts). The ordinal of each was worked out behind the lane's lock: one that exists must be loud and end the
 * commit. $1 to $14, a place for each step; a column that no step has anything in is null.
 *
 * Lists of columns, because taking JSON apart is a third of what the server does for such small rows.
 */
export const writeHistory = statement<unknown>(
  "write-history",
  `INSERT INTO fencepost.step (
     tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count,
     first_at, last_at
   )
   SELECT tx_id, ordinal, chain_id, event, from_state, state, sub_state, node_id, token, reason, actor, audit, count,
     coalesce(at, now()), coalesce(at, now())
   FROM (${ROWS}) AS s`,
);
