import { statement } from "./statement.ts";

/** Mined so deep that no reorg is expected there: nobody resumes or loads these any more. */
export const unwatchTransactions = statement<unknown>(
  "unwatch-transactions",
  `WITH passed AS (
     UPDATE fencepost.transaction AS t SET live = false, outcome = t.state
     WHERE t.tx_id = ANY ($1::uuid[])
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM passed), $2, 'transactions past their watch')`,
);
