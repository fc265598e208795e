import { statement } from "./statement.ts";

/** Plain inserts: a nonce that is a hole already would be one that was given up twice, which must be loud. */
export const writeHoles = statement<unknown>(
  "write-holes",
  `INSERT INTO fencepost.hole (chain_id, signer, nonce, why, detail, reservation_id, since)
   SELECT chain_id, signer, nonce, why, detail, reservation_id, now()
   FROM json_to_recordset($1::json) AS h(
     chain_id bigint, signer text, nonce bigint, why text, detail text, reservation_id uuid
   )`,
);
