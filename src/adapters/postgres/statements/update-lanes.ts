import { statement } from "./statement.ts";

/** Cursor, suspension and counters of the lanes that a commit changes; all of them are locked by now. */
export const updateLanes = statement<unknown>(
  "update-lanes",
  `WITH changed AS (
     UPDATE fencepost.lane AS l
     SET next_nonce = w.next_nonce,
       suspended = w.suspended_by IS NOT NULL,
       suspended_by = w.suspended_by,
       reconciled_epoch = w.reconciled_epoch,
       confirmed_total = l.confirmed_total + w.confirmed,
       failed_total = l.failed_total + w.failed
     FROM json_to_recordset($1::json) AS w(
       chain_id bigint, signer text, token bigint, next_nonce bigint, suspended_by text, reconciled_epoch integer,
       confirmed bigint, failed bigint
     )
     WHERE l.chain_id = ANY ($2::bigint[]) AND l.signer = ANY ($3::text[])
       AND l.chain_id = w.chain_id AND l.signer = w.signer AND l.token = w.token
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM changed), $4, 'lanes')`,
);
