import { statement } from "./statement.ts";

/** Intake rows by id, behind the lane's lock. Those that are aliases by now are for the caller to drop. */
export const readIntake = statement<WaitingIntakeRow & { readonly alias_of: string | null }>(
  "read-intake",
  `SELECT i.intake_id, i.tx_id, i.chain_id, i.signer, i.request_id, i.alias_of, i.created_at,
     i.created_at::text AS accepted_at, encode(i.fingerprint, 'hex') AS fingerprint
   FROM fencepost.intake AS i
   WHERE i.intake_id = ANY ($1::bigint[])`,
);

export interface WaitingIntakeRow {
  readonly intake_id: number;
  readonly tx_id: string;
  readonly chain_id: number;
  readonly signer: string;
  readonly request_id: string | null;
  readonly created_at: Date;
  /** The same to the microsecond, which a Date cannot hold. */
  readonly accepted_at: string;
  readonly fingerprint: string;
}
