import type { PayloadColumns } from "../columns.ts";
import { statement } from "./statement.ts";

/**
 * What waits in the intake table for these lanes, in call order. Whatever is visible and not settled, never by a cursor
 * over ids: a lower id may become visible later. OFFSET 0 keeps the planner from walking the ids past every alias.
 */
export const loadIntake = statement<IntakeIntentRow>(
  "load-intake",
  `SELECT i.intake_id, i.tx_id, i.chain_id, i.signer, i.request_id, i.to_address, encode(i.data, 'hex') AS data, i.value,
     i.gas, i.fee_type, i.gas_price, i.max_fee_per_gas, i.max_priority_fee_per_gas, i.access_list, i.metadata,
     encode(i.fingerprint, 'hex') AS fingerprint
   FROM (
     SELECT w.* FROM fencepost.intake AS w
     WHERE w.alias_of IS NULL AND w.signer = ANY ($3::text[]) AND w.chain_id = ANY ($2::bigint[])
     OFFSET 0
   ) AS i
   JOIN json_to_recordset($1::json) AS k(chain_id bigint, signer text) ON i.chain_id = k.chain_id AND i.signer = k.signer
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
