import { statement } from "./statement.ts";

/** The stored canonical blocks of a chain from a height on, ascending. */
export const readConfirmations = statement<BlockRow>(
  "read-confirmations",
  `SELECT c.block_number, c.block_hash
   FROM fencepost.confirmation AS c
   WHERE c.chain_id = $1 AND c.block_number >= $2
   ORDER BY c.block_number
   LIMIT $3`,
);

export interface BlockRow {
  readonly block_number: number;
  readonly block_hash: string;
}
