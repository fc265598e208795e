import type { ReceiptRow } from "./read-receipts.ts";
import { statement } from "./statement.ts";

/** The receipts of what a lane's owner follows. */
export const readTrackedReceipts = statement<ReceiptRow>(
  "read-tracked-receipts",
  `SELECT r.tx_id, r.tx_hash AS receipt_tx_hash, r.block_number, r.block_hash, r.transaction_index,
     r.status AS receipt_status, r.gas_used, r.effective_gas_price, r.contract_address
   FROM fencepost.receipt AS r
   WHERE r.tx_id = ANY (ARRAY(
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('TRACKING', 'STUCK')
     ORDER BY t.nonce
   ))`,
);
