import { statement } from "./statement.ts";

/** Lanes nobody has heard of yet, free and with token 0. In lock order, because two nodes may do this at once. */
export const ensureLanes = statement<unknown>(
  "ensure-lanes",
  `INSERT INTO fencepost.lane (chain_id, signer)
   SELECT k.chain_id, k.signer
   FROM json_to_recordset($1::json) AS k(chain_id bigint, signer text)
   ORDER BY k.chain_id, k.signer
   ON CONFLICT (signer, chain_id) DO NOTHING`,
);
