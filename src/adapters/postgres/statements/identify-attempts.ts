import { statement } from "./statement.ts";

/** What a node made of attempts that it signed itself. A hash that is known never changes. */
export const identifyAttempts = statement<unknown>(
  "identify-attempts",
  `WITH identified AS (
     UPDATE fencepost.attempt AS a
     SET tx_hash = i.tx_hash
     FROM json_to_recordset($1::json) AS i(tx_id uuid, ordinal integer, tx_hash text)
     WHERE a.tx_id = ANY ($2::uuid[]) AND a.tx_id = i.tx_id AND a.ordinal = i.ordinal
       AND a.node_signed AND coalesce(a.tx_hash, i.tx_hash) = i.tx_hash
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM identified), $3, 'identified attempts')`,
);
