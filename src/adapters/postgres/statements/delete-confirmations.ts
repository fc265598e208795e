import { statement } from "./statement.ts";

/** Blocks of a chain that are gone: those from the fork up, and those nobody needs any more. */
export const deleteConfirmations = statement<unknown>(
  "delete-confirmations",
  `DELETE FROM fencepost.confirmation AS c
   WHERE c.chain_id = $1 AND (c.block_number >= $2 OR c.block_number < $3)`,
);
