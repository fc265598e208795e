import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists(
  "chain_id bigint, signer text, token bigint, next_nonce bigint, suspended_by text, " +
    "reconciled_epoch integer, confirmed bigint, failed bigint, live_allocated bigint, live_tracking bigint, " +
    "live_stuck bigint, live_confirmed bigint, live_failed bigint",
);

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
     FROM (${ROWS}) AS w
     WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
       AND l.chain_id = w.chain_id AND l.signer = w.signer AND l.token = w.token
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM changed), $14, 'lanes')`,
);
