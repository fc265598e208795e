import { statement } from "./statement.ts";

/** A page over waiting intake rows. $1 order, $2 after, $3 limit, $4 chain or null, $5 signer or null. */
export const pageIntake = statement<{ readonly tx_id: string }>(
  "page-intake",
  `(
     SELECT i.tx_id FROM fencepost.intake AS i
     WHERE $1::text = 'newest' AND i.alias_of IS NULL
       AND i.tx_id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
       AND ($4::bigint IS NULL OR i.chain_id = $4) AND ($5::text IS NULL OR i.signer = $5)
     ORDER BY i.tx_id DESC LIMIT $3
   )
   UNION ALL
   (
     SELECT i.tx_id FROM fencepost.intake AS i
     WHERE $1::text = 'oldest' AND i.alias_of IS NULL
       AND i.tx_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
       AND ($4::bigint IS NULL OR i.chain_id = $4) AND ($5::text IS NULL OR i.signer = $5)
     ORDER BY i.tx_id LIMIT $3
   )`,
);
