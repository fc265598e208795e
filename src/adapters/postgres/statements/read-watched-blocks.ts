import type { BlockRow } from "./read-confirmations.ts";
import { statement } from "./statement.ts";

/** The blocks that hold settled transactions of a lane still under watch. */
export const readWatchedBlocks = statement<BlockRow>(
  "read-watched-blocks",
  `SELECT DISTINCT r.block_number, r.block_hash
   FROM fencepost.receipt AS r
   WHERE r.tx_id = ANY (ARRAY(
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('CONFIRMED', 'FAILED_FINAL')
     ORDER BY t.nonce
   ))
   ORDER BY r.block_number, r.block_hash`,
);
