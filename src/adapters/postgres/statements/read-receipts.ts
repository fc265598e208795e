import type { ReceiptColumns } from "../columns.ts";
import { statement } from "./statement.ts";

/** The receipts of these transactions. */
export const readReceipts = statement<ReceiptRow>(
  "read-receipts",
  `SELECT r.tx_id, r.tx_hash AS receipt_tx_hash, r.block_number, r.block_hash, r.transaction_index,
     r.status AS receipt_status, r.gas_used, r.effective_gas_price, r.contract_address
   FROM fencepost.receipt AS r
   WHERE r.tx_id = ANY ($1::uuid[])`,
);

export interface ReceiptRow extends ReceiptColumns {
  readonly tx_id: string;
}
