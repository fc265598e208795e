import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists(
  "chain_id bigint, signer text, instance_id uuid, token bigint, cursor bigint, suspended_by text, " +
    "reconciled_epoch integer, new_cursor bigint, allocated bigint",
);

/**
 * Fence, lock and cursor of an allocation that was planned from memory: as lock-lanes.ts, but only where the lane is as
 * it was left, and the cursor moves at once. One lane that is not ends the transaction.
 *
 * $1 to $9, a place for each lane: chain, signer, instance, token, then cursor, suspension and epoch as they were left,
 * the new cursor, and how many transactions it allocates. $10 how many lanes they are, $11 the transaction's marker.
 */
export const advanceLanes = statement<unknown>(
  "advance-lanes",
  `WITH held AS MATERIALIZED (
     SELECT l.chain_id, l.signer, f.new_cursor, f.allocated
     FROM fencepost.lane AS l
     JOIN (${ROWS}) AS f
       ON l.chain_id = f.chain_id AND l.signer = f.signer AND l.owner_instance = f.instance_id AND l.token = f.token
         AND l.next_nonce = f.cursor AND l.suspended_by IS NOT DISTINCT FROM f.suspended_by
         AND l.reconciled_epoch = f.reconciled_epoch
     JOIN fencepost.node_instance AS n ON n.instance_id = l.owner_instance
     WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
       AND NOT n.dead AND n.expires_at > clock_timestamp()
     ORDER BY l.chain_id, l.signer
     FOR NO KEY UPDATE OF l
   ), advanced AS (
     UPDATE fencepost.lane AS l
     SET next_nonce = h.new_cursor, live_allocated = l.live_allocated + h.allocated
     FROM held AS h
     WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
       AND l.chain_id = h.chain_id AND l.signer = h.signer
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM advanced), $10, 'lanes as they were left'),
     fencepost.require_open($11)`,
);
