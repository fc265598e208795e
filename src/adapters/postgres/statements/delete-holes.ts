import { statement } from "./statement.ts";

/** Holes that this commit closes. */
export const deleteHoles = statement<unknown>(
  "delete-holes",
  `WITH closed AS (
     DELETE FROM fencepost.hole AS h
     USING json_to_recordset($1::json) AS c(chain_id bigint, signer text, nonce bigint)
     WHERE h.signer = ANY ($2::text[]) AND h.chain_id = ANY ($3::bigint[]) AND h.nonce = ANY ($4::bigint[])
       AND h.signer = c.signer AND h.chain_id = c.chain_id AND h.nonce = c.nonce
     RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM closed), $5, 'closed holes')`,
);
