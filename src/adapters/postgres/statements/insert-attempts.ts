import { statement } from "./statement.ts";

/**
 * Signed payloads, before any byte of them leaves. `first_sent_at` is set where the same commit claims the sending. $1 to
 * $14, a place for each; a column that none of them has anything in is null.
 */
export const insertAttempts = statement<unknown>(
  "insert-attempts",
  `INSERT INTO fencepost.attempt (
     tx_id, ordinal, chain_id, tx_hash, kind, gas, fee_type, gas_price, max_fee_per_gas, max_priority_fee_per_gas,
     is_foreign, node_signed, raw_transaction, created_at, first_sent_at
   )
   SELECT tx_id, ordinal, chain_id, tx_hash, kind, gas, fee_type, gas_price, max_fee_per_gas, max_priority_fee_per_gas,
     is_foreign IS TRUE, node_signed IS TRUE, decode(raw_transaction, 'hex'), now(), CASE WHEN claimed THEN now() END
   FROM unnest(
     $1::uuid[], $2::integer[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::numeric[],
     $9::numeric[], $10::numeric[], $11::boolean[], $12::boolean[], $13::text[], $14::boolean[]
   ) AS a(
     tx_id, ordinal, chain_id, tx_hash, kind, gas, fee_type, gas_price, max_fee_per_gas, max_priority_fee_per_gas,
     is_foreign, node_signed, raw_transaction, claimed
   )`,
);
