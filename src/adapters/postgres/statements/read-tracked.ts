import { statement } from "./statement.ts";

/** What a lane's owner follows: signed and not settled, in nonce order. */
export const readTracked = statement<TrackedRow>(
  "read-tracked",
  `SELECT t.tx_id, t.nonce, t.state, t.sub_state, t.submit_attempts, t.created_at, t.request_id,
     t.last_submitted_at, t.accepted_ordinal, t.last_error,
     CASE WHEN t.state = 'STUCK' OR t.sub_state = 'UNKNOWN_SUBMIT_RESULT' THEN (
       SELECT max(h.last_at) FROM fencepost.step AS h WHERE h.tx_id = t.tx_id AND h.event = 'loseSight'
     ) END AS lost_sight_at
   FROM fencepost.transaction AS t
   WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('TRACKING', 'STUCK')
   ORDER BY t.nonce`,
);

export interface TrackedRow {
  readonly tx_id: string;
  readonly nonce: number;
  readonly state: string;
  readonly sub_state: string | null;
  readonly submit_attempts: number;
  readonly created_at: Date;
  readonly request_id: string | null;
  readonly last_submitted_at: Date | null;
  readonly accepted_ordinal: number | null;
  readonly last_error: string | null;
  readonly lost_sight_at: Date | null;
}
