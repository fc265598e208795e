import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists(
  "tx_id uuid, ordinal integer, chain_id bigint, tx_hash text, kind text, gas bigint, fee_type text, " +
    "gas_price numeric, max_fee_per_gas numeric, max_priority_fee_per_gas numeric, is_foreign boolean, " +
    "node_signed boolean, raw_transaction text, claimed boolean",
);

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
   FROM (${ROWS}) AS a`,
);
