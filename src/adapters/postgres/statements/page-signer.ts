import { statement } from "./statement.ts";

/** A page over one signer's transactions. $1 order, $2 after, $3 limit, $4 chain or null, $5 signer, $6 state or null. */
export const pageSigner = statement<{ readonly tx_id: string }>(
  "page-signer",
  `(
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE $1::text = 'newest' AND t.signer = $5
       AND t.tx_id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
       AND ($4::bigint IS NULL OR t.chain_id = $4) AND ($6::text IS NULL OR t.state = $6)
     ORDER BY t.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE $1::text = 'oldest' AND t.signer = $5
       AND t.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
       AND ($4::bigint IS NULL OR t.chain_id = $4) AND ($6::text IS NULL OR t.state = $6)
     ORDER BY t.tx_id LIMIT $3
   )`,
);
