import { statement } from "./statement.ts";

/** Those of these lanes that nobody owns, or a dead instance does; looked at, not locked. */
export const findFreeLanes = statement<{ readonly chain_id: number; readonly signer: string }>(
  "find-free-lanes",
  `SELECT l.chain_id, l.signer
   FROM fencepost.lane AS l
   LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance
   JOIN json_to_recordset($1::json) AS k(chain_id bigint, signer text) ON l.chain_id = k.chain_id AND l.signer = k.signer
   WHERE l.chain_id = ANY ($2::bigint[]) AND l.signer = ANY ($3::text[]) AND (l.owner_instance IS NULL OR o.dead)`,
);
