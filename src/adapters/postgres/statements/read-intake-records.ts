import type { PayloadColumns } from "../columns.ts";
import { statement } from "./statement.ts";

/** Intake rows by transaction id, aliases included: their id is another name of `alias_of`. */
export const readIntakeRecords = statement<IntakeRecordRow>(
  "read-intake-records",
  `SELECT i.tx_id, i.chain_id, i.signer, i.request_id, i.alias_of, i.created_at, i.to_address,
     encode(i.data, 'hex') AS data, i.value, i.gas, i.fee_type, i.gas_price, i.max_fee_per_gas,
     i.max_priority_fee_per_gas, i.access_list, i.metadata
   FROM fencepost.intake AS i
   WHERE i.tx_id = ANY ($1::uuid[])`,
);

export interface IntakeRecordRow extends PayloadColumns {
  readonly tx_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly request_id: string | null;
  readonly alias_of: string | null;
  readonly created_at: Date;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}
