import type { Confirmation } from "../../../domain/chain/confirmations.ts";
import { statement } from "./statement.ts";

/** Canonical blocks as the deciding node saw them. */
export const insertConfirmations = statement("insert-confirmations")`
  INSERT INTO fencepost.confirmation (chain_id, block_number, block_hash)
  SELECT $1, block_number, block_hash
  FROM json_to_recordset($2::json) AS b(block_number bigint, block_hash text)`;

/** The stored canonical blocks of a chain from a height on, ascending. */
export const readConfirmations = statement<Confirmation>("read-confirmations")`
  SELECT c.block_number AS number, c.block_hash AS hash
  FROM fencepost.confirmation AS c
  WHERE c.chain_id = $1 AND c.block_number >= $2
  ORDER BY c.block_number
  LIMIT $3`;

/** Blocks of a chain that are gone: those from the fork up, and those that are no longer needed. */
export const deleteConfirmations = statement("delete-confirmations")`
  DELETE FROM fencepost.confirmation AS c
  WHERE c.chain_id = $1 AND (c.block_number >= $2 OR c.block_number < $3)`;
