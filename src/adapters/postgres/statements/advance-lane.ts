import { statement } from "./statement.ts";

/**
 * As advance-lanes.ts, for one lane alone: the update is its lock, and there is no order to keep.
 *
 * $1 to $7 the lane as it was left: chain, signer, instance, token, cursor, suspension and epoch; $8 the new cursor, $9 how
 * many transactions it allocates, $10 the transaction's marker.
 */
export const advanceLane = statement<unknown>(
  "advance-lane",
  `WITH advanced AS (
     UPDATE fencepost.lane SET next_nonce = $8::bigint, live_allocated = live_allocated + $9::bigint
     WHERE chain_id = $1::bigint AND signer = $2::text AND owner_instance = $3::uuid AND token = $4::bigint
       AND next_nonce = $5::bigint AND suspended_by IS NOT DISTINCT FROM $6::text AND reconciled_epoch = $7::integer
       AND (
         SELECT NOT n.dead AND n.expires_at > clock_timestamp()
         FROM fencepost.node_instance AS n WHERE n.instance_id = $3::uuid
       )
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM advanced), 1, 'lanes as they were left'),
     fencepost.require_open($10)`,
);
