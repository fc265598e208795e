import { statement } from "./statement.ts";

/** Rows of the intake table with these ids. */
export const readLeft = statement<LeftRow>("read-left")`
  SELECT i.tx_id, i.alias_of, i.awaits IS NOT NULL AS awaits
  FROM fencepost.intake AS i
  WHERE i.tx_id = ANY ($1::uuid[])`;

export interface LeftRow {
  readonly txId: string;
  readonly aliasOf: string | null;
  /** A policy has it wait for approval. */
  readonly awaits: boolean;
}

/**
 * Intents that nodes of the release before left in the intake table, refused while their senders wait: the row goes, and with it
 * the claim on the request id. Answers that nobody came to read are deleted on the way.
 */
export const declineIntents = statement("decline-intents")`
  WITH told AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS d(intake_id bigint, problem text)
  ), gone AS (
    DELETE FROM fencepost.intake AS i USING told AS d
    WHERE i.intake_id = ANY ($2::bigint[]) AND i.intake_id = d.intake_id AND i.unanswered
    RETURNING i.tx_id, i.chain_id, d.problem
  ), kept AS (
    INSERT INTO fencepost.declined (tx_id, chain_id, problem, at) SELECT tx_id, chain_id, problem, now() FROM gone
    RETURNING 1
  ), old AS (
    DELETE FROM fencepost.declined WHERE at < now() - interval '10 minutes'
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM kept), $3, 'declined intake rows')`;
