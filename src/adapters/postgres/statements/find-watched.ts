import type { TrackedRow } from "./read-tracked.ts";
import { statement } from "./statement.ts";

/** Settled transactions of a lane, still under watch, that were mined in one of these blocks. */
export const findWatched = statement<TrackedRow>(
  "find-watched",
  `SELECT t.tx_id, t.nonce, t.state, t.sub_state, t.submit_attempts, t.created_at, t.request_id,
     t.last_submitted_at, t.accepted_ordinal, t.last_error, NULL::timestamptz AS lost_sight_at
   FROM fencepost.transaction AS t
   WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('CONFIRMED', 'FAILED_FINAL')
     AND (SELECT r.block_hash FROM fencepost.receipt AS r WHERE r.tx_id = t.tx_id) = ANY ($3::text[])
   ORDER BY t.nonce`,
);
