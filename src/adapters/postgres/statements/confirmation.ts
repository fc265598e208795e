import type { Confirmation } from "../../../domain/chain/confirmations.ts";
import { lists } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

const BLOCK = "number bigint, hash text";

/** Stores the canonical blocks on which a node based its decision about transactions. */
export const insertConfirmations = taking(BLOCK)("insert-confirmations")`
  INSERT INTO fencepost.confirmation (block_number, block_hash, chain_id)
  SELECT number, hash, $3 FROM (${lists(BLOCK)}) AS b`;

/** Reads the stored canonical blocks of a chain from a height on, ascending. */
export const readConfirmations = statement<Confirmation>("read-confirmations")`
  SELECT c.block_number AS number, c.block_hash AS hash
  FROM fencepost.confirmation AS c
  WHERE c.chain_id = $1 AND c.block_number >= $2
  ORDER BY c.block_number
  LIMIT $3`;

/**
 * Deletes stored blocks of a chain: those replaced by a fork (from $2 on), and old ones that are no longer needed
 * (below $3).
 */
export const deleteConfirmations = statement("delete-confirmations")`
  DELETE FROM fencepost.confirmation AS c
  WHERE c.chain_id = $1 AND (c.block_number >= $2 OR c.block_number < $3)`;
