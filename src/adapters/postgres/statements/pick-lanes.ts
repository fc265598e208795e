import { statement } from "./statement.ts";

/**
 * Locks at most $5 of these lanes that are held by the claimant ($2) or free, its own first, passing over what others
 * have locked. Twenty nodes that ask at once thus share instead of queueing.
 */
export const pickLanes = statement<PickedRow>(
  "pick-lanes",
  `SELECT l.chain_id, l.signer, l.token, l.owner_instance IS NOT DISTINCT FROM $2::uuid AS kept
   FROM fencepost.lane AS l
   LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance
   JOIN json_to_recordset($1::json) AS k(chain_id bigint, signer text) ON l.chain_id = k.chain_id AND l.signer = k.signer
   WHERE l.chain_id = ANY ($3::bigint[]) AND l.signer = ANY ($4::text[])
     AND (l.owner_instance IS NULL OR l.owner_instance = $2 OR o.dead)
   ORDER BY l.owner_instance IS NOT DISTINCT FROM $2::uuid DESC, l.chain_id, l.signer
   LIMIT $5
   FOR NO KEY UPDATE OF l SKIP LOCKED`,
);

export interface PickedRow {
  readonly chain_id: number;
  readonly signer: string;
  readonly token: number;
  readonly kept: boolean;
}
