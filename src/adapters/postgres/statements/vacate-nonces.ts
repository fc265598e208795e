import { statement } from "./statement.ts";

/**
 * Lifts transactions that are about to move down out of everybody's way: the index on nonces is checked row by row, and
 * a row may move into a place that another one has not left yet. 2^52 above is beyond any nonce there is.
 */
export const vacateNonces = statement<unknown>(
  "vacate-nonces",
  `WITH vacated AS (
     UPDATE fencepost.transaction AS t
     SET nonce = t.nonce + 4503599627370496
     WHERE t.tx_id = ANY ($1::uuid[]) AND t.state = 'ALLOCATED' AND t.attempt_count = 0
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM vacated), $2, 'vacated nonces')`,
);
