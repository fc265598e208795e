import { statement } from "./statement.ts";

/** Canonical blocks as the deciding node saw them. */
export const insertConfirmations = statement<unknown>(
  "insert-confirmations",
  `INSERT INTO fencepost.confirmation (chain_id, block_number, block_hash)
   SELECT $1, block_number, block_hash
   FROM json_to_recordset($2::json) AS b(block_number bigint, block_hash text)`,
);
