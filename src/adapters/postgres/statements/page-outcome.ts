import { statement } from "./statement.ts";

/** A page over what is over, by its final state. $1 order, $2 after, $3 limit, $4 chain or null, $5 outcome. */
export const pageOutcome = statement<{ readonly tx_id: string }>(
  "page-outcome",
  `(
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE $1::text = 'newest' AND t.outcome = $5 AND t.outcome IS NOT NULL
       AND t.tx_id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
       AND ($4::bigint IS NULL OR t.chain_id = $4)
     ORDER BY t.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE $1::text = 'oldest' AND t.outcome = $5 AND t.outcome IS NOT NULL
       AND t.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
       AND ($4::bigint IS NULL OR t.chain_id = $4)
     ORDER BY t.tx_id LIMIT $3
   )`,
);
