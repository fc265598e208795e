import { statement } from "./statement.ts";

/** Receipts found on the canonical chain; a transaction has one at a time. $1 to $10, a place for each. */
export const writeReceipts = statement<unknown>(
  "write-receipts",
  `INSERT INTO fencepost.receipt (
     tx_id, chain_id, tx_hash, block_number, block_hash, transaction_index, status, gas_used, effective_gas_price,
     contract_address
   )
   SELECT tx_id, chain_id, tx_hash, block_number, block_hash, transaction_index, status, gas_used, effective_gas_price,
     contract_address
   FROM unnest(
     $1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::integer[], $7::text[], $8::bigint[],
     $9::numeric[], $10::text[]
   ) AS r(
     tx_id, chain_id, tx_hash, block_number, block_hash, transaction_index, status, gas_used, effective_gas_price,
     contract_address
   )
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
