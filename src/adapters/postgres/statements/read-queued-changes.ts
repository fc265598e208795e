import type { PayloadColumns } from "../columns.ts";
import { statement } from "./statement.ts";

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
