import { statement } from "./statement.ts";

/** What is signed instead of the caller's payload. Changed twice before it was signed, the last one counts. */
export const writeQueuedChanges = statement<unknown>(
  "write-queued-changes",
  `INSERT INTO fencepost.queued_change AS q (
     tx_id, chain_id, kind, to_address, data, value, gas, gas_limit, fee_type, gas_price, max_fee_per_gas,
     max_priority_fee_per_gas, access_list
   )
   SELECT tx_id, chain_id, kind, to_address, decode(data, 'hex'), value, gas, gas_limit, fee_type, gas_price,
     max_fee_per_gas, max_priority_fee_per_gas, access_list
   FROM json_to_recordset($1::json) AS c(
     tx_id uuid, chain_id bigint, kind text, to_address text, data text, value numeric, gas bigint, gas_limit bigint,
     fee_type text, gas_price numeric, max_fee_per_gas numeric, max_priority_fee_per_gas numeric, access_list jsonb
   )
   ON CONFLICT (tx_id) DO UPDATE
   SET kind = excluded.kind,
     to_address = excluded.to_address,
     data = excluded.data,
     value = excluded.value,
     gas = excluded.gas,
     gas_limit = excluded.gas_limit,
     fee_type = excluded.fee_type,
     gas_price = excluded.gas_price,
     max_fee_per_gas = excluded.max_fee_per_gas,
     max_priority_fee_per_gas = excluded.max_priority_fee_per_gas,
     access_list = excluded.access_list`,
);
