import { statement } from "./statement.ts";

/**
 * Cursor, suspension and counters of the lanes that a commit changes; all of them are locked by now. $1 to $13, a place
 * for each lane: chain, signer, token, cursor, suspension, epoch, newly confirmed, newly failed, and what is added to the
 * live transactions of each state. $14 how many they are.
 */
export const updateLanes = statement<unknown>(
  "update-lanes",
  `WITH changed AS (
     UPDATE fencepost.lane AS l
     SET next_nonce = w.next_nonce,
       suspended = w.suspended_by IS NOT NULL,
       suspended_by = w.suspended_by,
       reconciled_epoch = w.reconciled_epoch,
       confirmed_total = l.confirmed_total + w.confirmed,
       failed_total = l.failed_total + w.failed,
       live_allocated = l.live_allocated + w.live_allocated,
       live_tracking = l.live_tracking + w.live_tracking,
       live_stuck = l.live_stuck + w.live_stuck,
       live_confirmed = l.live_confirmed + w.live_confirmed,
       live_failed = l.live_failed + w.live_failed
     FROM unnest(
       $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::bigint[], $8::bigint[],
       $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[]
     ) AS w(
       chain_id, signer, token, next_nonce, suspended_by, reconciled_epoch, confirmed, failed,
       live_allocated, live_tracking, live_stuck, live_confirmed, live_failed
     )
     WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
       AND l.chain_id = w.chain_id AND l.signer = w.signer AND l.token = w.token
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM changed), $14, 'lanes')`,
);
