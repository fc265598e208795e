import { CHAINS } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/**
 * A page over everything live. $1 order, $2 after, $3 limit, $4 chain or null.
 */
export const pageLive = statement<{ readonly tx_id: string }>(
  "page-live",
  `WITH ${CHAINS}
   (
     SELECT page.tx_id FROM scope CROSS JOIN LATERAL (
       SELECT t.tx_id FROM fencepost.transaction AS t
       WHERE t.chain_id = scope.chain_id AND t.live
         AND t.tx_id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
       ORDER BY t.tx_id DESC LIMIT $3
     ) AS page
     WHERE $1::text = 'newest'
     ORDER BY page.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT page.tx_id FROM scope CROSS JOIN LATERAL (
       SELECT t.tx_id FROM fencepost.transaction AS t
       WHERE t.chain_id = scope.chain_id AND t.live
         AND t.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
       ORDER BY t.tx_id LIMIT $3
     ) AS page
     WHERE $1::text = 'oldest'
     ORDER BY page.tx_id LIMIT $3
   )`,
);
