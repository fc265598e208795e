import type { PayloadColumns } from "../columns.ts";
import { statement } from "./statement.ts";

/** What these transactions say, as their callers gave it. */
export const readPayloads = statement<PayloadRow>(
  "read-payloads",
  `SELECT p.tx_id, p.to_address, encode(p.data, 'hex') AS data, p.value, p.gas, p.gas_limit, p.fee_type, p.gas_price,
     p.max_fee_per_gas, p.max_priority_fee_per_gas, p.access_list
   FROM fencepost.payload AS p
   WHERE p.tx_id = ANY ($1::uuid[])`,
);

export interface PayloadRow extends PayloadColumns {
  readonly tx_id: string;
  readonly gas_limit: number;
}

/** What is to be signed instead of the payloads of these transactions. */
export const readQueuedChanges = statement<QueuedChangeRow>(
  "read-queued-changes",
  `SELECT q.tx_id, q.kind, q.to_address, encode(q.data, 'hex') AS data, q.value, q.gas, q.gas_limit, q.fee_type,
     q.gas_price, q.max_fee_per_gas, q.max_priority_fee_per_gas, q.access_list
   FROM fencepost.queued_change AS q
   WHERE q.tx_id = ANY ($1::uuid[])`,
);

export interface QueuedChangeRow extends PayloadColumns {
  readonly tx_id: string;
  readonly kind: string;
  readonly gas_limit: number;
}

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
