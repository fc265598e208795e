import { chainsOf } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/**
 * A page over what is over of one signer, by outcome. $1 order, $2 after, $3 limit, $4 chain or null, $5
 * outcome, $6 signer.
 */
export const pageFinalOfSigner = statement<{ readonly tx_id: string }>(
  "page-final-of-signer",
  `WITH ${chainsOf("$6")}
   (
     SELECT page.tx_id FROM scope CROSS JOIN LATERAL (
       SELECT t.tx_id FROM fencepost.transaction AS t
       WHERE t.signer = $6 AND t.chain_id = scope.chain_id AND t.outcome = $5 AND t.outcome IS NOT NULL
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
       WHERE t.signer = $6 AND t.chain_id = scope.chain_id AND t.outcome = $5 AND t.outcome IS NOT NULL
         AND t.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
       ORDER BY t.tx_id LIMIT $3
     ) AS page
     WHERE $1::text = 'oldest'
     ORDER BY page.tx_id LIMIT $3
   )`,
);
