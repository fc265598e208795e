import { statement } from "./statement.ts";

/** Waits until no transaction holds any of these lanes, whoever owns them now. Ascending, as everywhere. */
export const lockLanesByKey = statement<unknown>(
  "lock-lanes-by-key",
  `SELECT 1
   FROM fencepost.lane AS l
   JOIN json_to_recordset($1::json) AS k(chain_id bigint, signer text) ON l.chain_id = k.chain_id AND l.signer = k.signer
   WHERE l.chain_id = ANY ($2::bigint[]) AND l.signer = ANY ($3::text[])
   ORDER BY l.chain_id, l.signer
   FOR NO KEY UPDATE OF l`,
);
