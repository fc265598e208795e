import { statement } from "./statement.ts";

/**
 * Takes lanes over that are free: never held, released, or of a dead instance. They were locked and judged by the
 * statements before this one; it judges again, and ends the transaction where it finds otherwise.
 */
export const takeLanes = statement<unknown>(
  "take-lanes",
  `WITH taken AS (
     UPDATE fencepost.lane AS l
     SET owner_instance = $2, token = l.token + 1, acquired_at = clock_timestamp()
     FROM json_to_recordset($1::json) AS k(chain_id bigint, signer text)
     WHERE l.chain_id = ANY ($3::bigint[]) AND l.signer = ANY ($4::text[])
       AND l.chain_id = k.chain_id AND l.signer = k.signer
       AND (
         l.owner_instance IS NULL
         OR coalesce((SELECT o.dead FROM fencepost.node_instance AS o WHERE o.instance_id = l.owner_instance), true)
       )
       AND (
         SELECT NOT n.dead AND n.expires_at > clock_timestamp() FROM fencepost.node_instance AS n WHERE n.instance_id = $2
       )
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM taken), $5, 'lanes taken')`,
);
