import type { PayloadColumns } from "../columns.ts";
import { statement } from "./statement.ts";

/** Transactions as a caller sees them, without attempts and receipt. Both sides are found by key. */
export const readRecords = statement<RecordRow>(
  "read-records",
  `SELECT t.tx_id, t.chain_id, t.signer, t.request_id, t.nonce, t.state, t.sub_state, t.last_error, t.submit_attempts,
     t.last_submitted_at, t.created_at, t.updated_at, t.confirmed_at, p.to_address, encode(p.data, 'hex') AS data,
     p.value, p.gas, p.gas_limit, p.fee_type, p.gas_price, p.max_fee_per_gas, p.max_priority_fee_per_gas, p.access_list,
     p.metadata
   FROM fencepost.transaction AS t
   JOIN fencepost.payload AS p ON p.tx_id = t.tx_id
   WHERE t.tx_id = ANY ($1::uuid[]) AND p.tx_id = ANY ($1::uuid[])`,
);

export interface RecordRow extends PayloadColumns {
  readonly tx_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly request_id: string | null;
  readonly nonce: number | null;
  readonly state: string;
  readonly sub_state: string | null;
  readonly last_error: string | null;
  readonly submit_attempts: number;
  readonly last_submitted_at: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly confirmed_at: Date | null;
  readonly gas_limit: number | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}
