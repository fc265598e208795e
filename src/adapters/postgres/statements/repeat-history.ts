import { statement } from "./statement.ts";

/**
 * Steps that repeat the last one of their transaction: counted there, with who, why and when of the newest. $1 the ids,
 * $2 to $6, a place for each: ordinal, how often, node, token, reason; $7 how many they are.
 */
export const repeatHistory = statement<unknown>(
  "repeat-history",
  `WITH repeated AS (
     UPDATE fencepost.history AS h
     SET count = h.count + s.count, node_id = s.node_id, token = s.token, reason = s.reason, last_at = now()
     FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::text[], $5::bigint[], $6::text[])
       AS s(tx_id, ordinal, count, node_id, token, reason)
     WHERE h.tx_id = ANY ($1::uuid[]) AND h.tx_id = s.tx_id AND h.ordinal = s.ordinal
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM repeated), $7, 'repeated steps')`,
);
