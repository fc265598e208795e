import { statement } from "./statement.ts";

/**
 * A page over live transactions in one state. $1 order, $2 after, $3 limit, $4 chain or null, $5 signer or null, $6
 * state. The live ones are few, so all of them in that state are found and then sorted; OFFSET 0 keeps the planner
 * from walking the primary key instead, past everything that is over.
 */
export const pageLive = statement<{ readonly tx_id: string }>(
  "page-live",
  `(
     SELECT live.tx_id FROM (
       SELECT t.tx_id FROM fencepost.transaction AS t
       WHERE $1::text = 'newest' AND t.live AND t.state = $6
         AND t.tx_id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
         AND ($4::bigint IS NULL OR t.chain_id = $4) AND ($5::text IS NULL OR t.signer = $5)
       OFFSET 0
     ) AS live
     ORDER BY live.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT live.tx_id FROM (
       SELECT t.tx_id FROM fencepost.transaction AS t
       WHERE $1::text = 'oldest' AND t.live AND t.state = $6
         AND t.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
         AND ($4::bigint IS NULL OR t.chain_id = $4) AND ($5::text IS NULL OR t.signer = $5)
       OFFSET 0
     ) AS live
     ORDER BY live.tx_id LIMIT $3
   )`,
);
