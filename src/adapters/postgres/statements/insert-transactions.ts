import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists(
  "tx_id uuid, chain_id bigint, signer text, request_id text, nonce bigint, accepted_at timestamptz, " +
    "to_address text, data text, value numeric, gas bigint, gas_limit bigint, fee_type text, gas_price numeric, " +
    "max_fee_per_gas numeric, max_priority_fee_per_gas numeric, access_list jsonb, metadata jsonb, " +
    "fingerprint text, node_id text, token bigint",
);

/**
 * Binds nonces: transaction and payload of everything that a commit allocates. Who gives the nonce, and when, is
 * the first step of its history, unless it was accepted before. Plain inserts: a nonce or a request id that
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
     ${ROWS}
   ), bound AS (
     INSERT INTO fencepost.transaction (
       tx_id, chain_id, signer, request_id, nonce, state, history_count, last_event, created_at, updated_at,
       allocated_by, allocated_under
     )
     SELECT tx_id, chain_id, signer, request_id, nonce, 'ALLOCATED', CASE WHEN accepted_at IS NULL THEN 1 ELSE 2 END,
       'allocate', coalesce(accepted_at, now()), now(), CASE WHEN accepted_at IS NULL THEN node_id END,
       CASE WHEN accepted_at IS NULL THEN token END
     FROM item
     RETURNING 1
   ), payload AS (
     INSERT INTO fencepost.payload (
       tx_id, chain_id, to_address, data, value, gas, gas_limit, fee_type, gas_price, max_fee_per_gas,
       max_priority_fee_per_gas, access_list, metadata, fingerprint
     )
     SELECT tx_id, chain_id, to_address, decode(data, 'hex'), value, gas, gas_limit, fee_type, gas_price,
       max_fee_per_gas, max_priority_fee_per_gas, access_list, metadata, decode(fingerprint, 'hex')
     FROM item
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM bound), $21, 'allocated transactions'), fencepost.require_open($22)`,
);
