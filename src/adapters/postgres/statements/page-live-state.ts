import { CHAINS, fewOf } from "../page-scopes.ts";
import { statement } from "./statement.ts";

/**
 * A page over live transactions in one state. $1 order, $2 after, $3 limit, $4 chain or null, $5 state. Few are
 * collected lane by lane; many are met by walking.
 */
export const pageLiveState = statement<{ readonly tx_id: string }>(
  "page-live-state",
  `WITH ${CHAINS},
   ${fewOf(`
     SELECT c.signer, c.chain_id, c.count FROM scope CROSS JOIN LATERAL (
       SELECT * FROM fencepost.live_count AS c WHERE c.chain_id = scope.chain_id AND c.state = $5 AND c.count > 0
     ) AS c
   `)}
   (
     SELECT page.tx_id FROM scope CROSS JOIN LATERAL (
       SELECT t.tx_id FROM fencepost.transaction AS t
       WHERE t.chain_id = scope.chain_id AND t.live AND t.state = $5
         AND t.tx_id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
       ORDER BY t.tx_id DESC LIMIT $3
     ) AS page
     WHERE $1::text = 'newest' AND (SELECT total.many FROM total)
     ORDER BY page.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT page.tx_id FROM scope CROSS JOIN LATERAL (
       SELECT t.tx_id FROM fencepost.transaction AS t
       WHERE t.chain_id = scope.chain_id AND t.live AND t.state = $5
         AND t.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
       ORDER BY t.tx_id LIMIT $3
     ) AS page
     WHERE $1::text = 'oldest' AND (SELECT total.many FROM total)
     ORDER BY page.tx_id LIMIT $3
   )
   UNION ALL
   (
     SELECT f.tx_id FROM few AS f
     WHERE $1::text = 'newest' AND f.tx_id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
     ORDER BY f.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT f.tx_id FROM few AS f
     WHERE $1::text = 'oldest' AND f.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
     ORDER BY f.tx_id LIMIT $3
   )`,
);
