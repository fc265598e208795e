import { statement } from "./statement.ts";

/**
 * Settled, and mined so deep that no reorg is expected there: nobody resumes or loads these any more. The receipt is
 * read by a sub-select per row, because a join would invite a plan that reads every receipt there is.
 */
export const unwatchTransactions = statement<unknown>(
  "unwatch-transactions",
  `UPDATE fencepost.transaction AS t
   SET live = false, outcome = t.state
   WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('CONFIRMED', 'FAILED_FINAL')
     AND (SELECT r.block_number FROM fencepost.receipt AS r WHERE r.tx_id = t.tx_id) <= $3`,
);
