import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists("tx_id uuid, ordinal integer, count integer, node_id text, token bigint, reason text");

/**
 * Steps that repeat the last one of their transaction: counted there, with who, why and when of the newest. One that
 * stood on the row of its transaction becomes a row of its own (the view's trigger). $1 the ids,
 * $2 to $6, a place for each: ordinal, how often, node, token, reason; $7 how many they are.
 */
export const repeatHistory = statement<unknown>(
  "repeat-history",
  `WITH repeated AS (
     UPDATE fencepost.history AS h
     SET count = h.count + s.count, node_id = s.node_id, token = s.token, reason = s.reason, last_at = now()
     FROM (${ROWS}) AS s
     WHERE h.tx_id = ANY ($1::uuid[]) AND h.tx_id = s.tx_id AND h.ordinal = s.ordinal
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM repeated), $7, 'repeated steps')`,
);
