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
