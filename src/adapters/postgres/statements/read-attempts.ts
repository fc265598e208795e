import type { FeeColumns } from "../columns.ts";
import { statement } from "./statement.ts";

/** Every attempt of these transactions. */
export const readAttempts = statement<AttemptRow>(
  "read-attempts",
  `SELECT a.tx_id, a.ordinal, a.kind, a.tx_hash, a.gas, a.fee_type, a.gas_price, a.max_fee_per_gas,
     a.max_priority_fee_per_gas, a.is_foreign, a.node_signed, a.created_at, a.first_sent_at
   FROM fencepost.attempt AS a
   WHERE a.tx_id = ANY ($1::uuid[])
   ORDER BY a.tx_id, a.ordinal`,
);

export interface AttemptRow extends FeeColumns {
  readonly tx_id: string;
  readonly ordinal: number;
  readonly kind: string;
  readonly tx_hash: string | null;
  readonly gas: number;
  readonly is_foreign: boolean;
  readonly node_signed: boolean;
  readonly created_at: Date;
  readonly first_sent_at: Date | null;
}
