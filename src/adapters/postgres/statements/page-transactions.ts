import { statement } from "./statement.ts";

/**
 * A page over all transactions by id, which is by time of creation. $1 the order, $2 where the page before ended, $3
 * how many. Only the half whose order was asked for is executed.
 */
export const pageTransactions = statement<{ readonly tx_id: string }>(
  "page-transactions",
  `(
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE $1::text = 'newest' AND t.tx_id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
     ORDER BY t.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE $1::text = 'oldest' AND t.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
     ORDER BY t.tx_id LIMIT $3
   )`,
);
