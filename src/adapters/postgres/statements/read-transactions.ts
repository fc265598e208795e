import { statement } from "./statement.ts";

/**
 * The transactions that a commit is about, as they stand behind the lane's lock: nobody else can move them. $2: those of
 * them whose payload may be compared with another, a row of another table for each.
 */
export const readTransactions = statement<CurrentRow>(
  "read-transactions",
  `SELECT t.tx_id, t.chain_id, t.signer, t.request_id, t.nonce, t.state, t.sub_state, t.live, t.history_count,
     t.last_event, t.attempt_count, t.accepted_ordinal, t.allocated_by, t.allocated_under,
     CASE WHEN t.tx_id = ANY ($2::uuid[]) THEN (
       SELECT encode(p.fingerprint, 'hex') FROM fencepost.payload AS p WHERE p.tx_id = t.tx_id
     ) ELSE '' END AS fingerprint
   FROM fencepost.transaction AS t
   WHERE t.tx_id = ANY ($1::uuid[])`,
);

export interface CurrentRow {
  readonly tx_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly request_id: string | null;
  readonly nonce: number | null;
  readonly state: string;
  readonly sub_state: string | null;
  readonly live: boolean;
  readonly history_count: number;
  readonly last_event: string;
  readonly attempt_count: number;
  readonly accepted_ordinal: number | null;
  /** Under whose term the steps were written that stand on the row. Null: none stands there. */
  readonly allocated_by: string | null;
  readonly allocated_under: number | null;
  /** Empty where it was not asked for. */
  readonly fingerprint: string;
}
