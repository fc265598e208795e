import type { PayloadColumns } from "../columns.ts";
import { statement } from "./statement.ts";

/**
 * What waits in the intake table for these lanes, in call order. Whatever is visible and not settled, never by a cursor
 * over ids: a lower id may become visible later.
 */
export const loadIntake = statement<IntakeIntentRow>(
  "load-intake",
  `SELECT i.intake_id, i.tx_id, i.chain_id, i.signer, i.request_id, i.to_address, encode(i.data, 'hex') AS data, i.value,
     i.gas, i.fee_type, i.gas_price, i.max_fee_per_gas, i.max_priority_fee_per_gas, i.access_list, i.metadata,
     encode(i.fingerprint, 'hex') AS fingerprint
   FROM fencepost.intake AS i
   JOIN json_to_recordset($1::json) AS k(chain_id bigint, signer text) ON i.chain_id = k.chain_id AND i.signer = k.signer
   WHERE i.alias_of IS NULL AND i.chain_id = ANY ($2::bigint[]) AND i.signer = ANY ($3::text[])
   ORDER BY i.intake_id
   LIMIT $4`,
);

export interface IntakeIntentRow extends PayloadColumns {
  readonly intake_id: number;
  readonly tx_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly request_id: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly fingerprint: string;
}
