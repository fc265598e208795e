import { statement } from "./statement.ts";

/**
 * Binds nonces: transaction and payload of everything that a commit allocates. The payload's row is the first step of
 * its history as well (the view `every_step`), unless it was accepted before. Plain inserts: a nonce or a request id that
 * exists must be loud and end the commit, never be skipped. $1 to $20, a place for each; a column that none of them has
 * anything in is null. $21 how many they are, $22 the transaction's marker where BEGIN may have failed without anybody
 * knowing yet, else null.
 *
 * Not COPY, which would take less of the server still: while it waits for the rest of its rows no timer of the server counts, and a node
 * that stands still in the middle of them would keep the lane's lock for as long as TCP likes.
 */
export const insertTransactions = statement<unknown>(
  "insert-transactions",
  `WITH item AS MATERIALIZED (
     SELECT * FROM unnest(
       $1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[],
       $9::numeric[], $10::bigint[], $11::bigint[], $12::text[], $13::numeric[], $14::numeric[], $15::numeric[],
       $16::jsonb[], $17::jsonb[], $18::text[], $19::text[], $20::bigint[]
     ) AS i(
       tx_id, chain_id, signer, request_id, nonce, accepted_at, to_address, data, value, gas, gas_limit, fee_type,
       gas_price, max_fee_per_gas, max_priority_fee_per_gas, access_list, metadata, fingerprint, node_id, token
     )
   ), bound AS (
     INSERT INTO fencepost.transaction (
       tx_id, chain_id, signer, request_id, nonce, state, history_count, last_event, created_at, updated_at
     )
     SELECT tx_id, chain_id, signer, request_id, nonce, 'ALLOCATED', CASE WHEN accepted_at IS NULL THEN 1 ELSE 2 END,
       'allocate', coalesce(accepted_at, now()), now()
     FROM item
     RETURNING 1
   ), payload AS (
     INSERT INTO fencepost.payload (
       tx_id, chain_id, to_address, data, value, gas, gas_limit, fee_type, gas_price, max_fee_per_gas,
       max_priority_fee_per_gas, access_list, metadata, fingerprint, allocated_by, allocated_under, allocated_at
     )
     SELECT tx_id, chain_id, to_address, decode(data, 'hex'), value, gas, gas_limit, fee_type, gas_price,
       max_fee_per_gas, max_priority_fee_per_gas, access_list, metadata, decode(fingerprint, 'hex'),
       CASE WHEN accepted_at IS NULL THEN node_id END, CASE WHEN accepted_at IS NULL THEN token END,
       CASE WHEN accepted_at IS NULL THEN now() END
     FROM item
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM bound), $21, 'allocated transactions'), fencepost.require_open($22)`,
);
