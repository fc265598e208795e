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
