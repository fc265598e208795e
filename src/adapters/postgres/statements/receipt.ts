import type { Confirmation } from "../../../domain/confirmations.ts";
import type { Receipt } from "../../../domain/transaction.ts";
import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists(
  "tx_id uuid, chain_id bigint, tx_hash text, block_number bigint, block_hash text, " +
    "transaction_index integer, status text, gas_used bigint, effective_gas_price numeric, " +
    "contract_address text",
);

/** Receipts found on the canonical chain; a transaction has one at a time. $1 to $10, a place for each. */
export const writeReceipts = statement<unknown>(
  "write-receipts",
  `INSERT INTO fencepost.receipt (
     tx_id, chain_id, tx_hash, block_number, block_hash, transaction_index, status, gas_used, effective_gas_price,
     contract_address
   )
   SELECT tx_id, chain_id, tx_hash, block_number, block_hash, transaction_index, status, gas_used, effective_gas_price,
     contract_address
   FROM (${ROWS}) AS r
   ON CONFLICT (tx_id) DO UPDATE
   SET tx_hash = excluded.tx_hash,
     block_number = excluded.block_number,
     block_hash = excluded.block_hash,
     transaction_index = excluded.transaction_index,
     status = excluded.status,
     gas_used = excluded.gas_used,
     effective_gas_price = excluded.effective_gas_price,
     contract_address = excluded.contract_address`,
);

/** Receipts whose block left the canonical chain. */
export const deleteReceipts = statement<unknown>(
  "delete-receipts",
  "DELETE FROM fencepost.receipt AS r WHERE r.tx_id = ANY ($1::uuid[])",
);

const RECEIPTS = `SELECT r.tx_id, r.tx_hash, r.block_number, r.block_hash, r.transaction_index, r.status,
     r.gas_used::numeric AS gas_used, r.effective_gas_price, r.contract_address
   FROM fencepost.receipt AS r`;

/** The receipts of these transactions. */
export const readReceipts = statement<ReceiptRow>(
  "read-receipts",
  `${RECEIPTS}
   WHERE r.tx_id = ANY ($1::uuid[])`,
);

export type ReceiptRow = Receipt & { readonly txId: string };

/** The receipts of what a lane's owner follows. */
export const readTrackedReceipts = statement<ReceiptRow>(
  "read-tracked-receipts",
  `${RECEIPTS}
   WHERE r.tx_id = ANY (ARRAY(
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('TRACKING', 'STUCK')
     ORDER BY t.nonce
   ))`,
);

/** The blocks that hold settled transactions of a lane still under watch. */
export const readWatchedBlocks = statement<Confirmation>(
  "read-watched-blocks",
  `SELECT DISTINCT r.block_number AS number, r.block_hash AS hash
   FROM fencepost.receipt AS r
   WHERE r.tx_id = ANY (ARRAY(
     SELECT t.tx_id FROM fencepost.transaction AS t
     WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('CONFIRMED', 'FAILED_FINAL')
     ORDER BY t.nonce
   ))
   ORDER BY r.block_number, r.block_hash`,
);
