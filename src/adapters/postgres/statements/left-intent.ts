import type { State, SubState } from "../../../domain/transitions.ts";
import { behind, lists, names, stored } from "../columns.ts";
import { INTENT } from "../transaction-fields.ts";
import { counted, statement, taking } from "./statement.ts";

/** In the order of the calls: intake ids are given as the rows come. A place for each, and how many they are. */
export const leaveIntents = taking(
  INTENT,
  counted("leave-intents", behind(INTENT), "intents left for their owner")`
  INSERT INTO fencepost.intake (${names(INTENT)}, unanswered)
  SELECT ${stored(INTENT)}, true
  FROM (${lists(INTENT)}, generate_subscripts($1::uuid[], 1) AS place) AS w
  ORDER BY place`,
);

/** What of these ids still stands in the intake table. */
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

/** The transactions that these ids name: their own, or those that they are aliases of. */
export const readTaken = statement<TakenRow>("read-taken")`
  SELECT t.tx_id, t.nonce, t.state, t.sub_state, t.last_error
  FROM fencepost.transaction AS t
  WHERE t.tx_id = ANY (
    $1::uuid[] || ARRAY(SELECT i.alias_of FROM fencepost.intake AS i WHERE i.tx_id = ANY ($1::uuid[]) AND i.alias_of IS NOT NULL)
  )`;

export interface TakenRow {
  readonly txId: string;
  readonly nonce: number | null;
  readonly state: State;
  readonly subState: SubState | null;
  readonly lastError: string | null;
}

export const readDeclined = statement<{ readonly txId: string; readonly problem: string }>("read-declined")`
  SELECT d.tx_id, d.problem FROM fencepost.declined AS d WHERE d.tx_id = ANY ($1::uuid[])`;

/** One at a time: of several, each would be locked in an order that is not the lane owner's. */
export const acceptIntent = statement<{ readonly txId: string }>("accept-intent")`
  UPDATE fencepost.intake AS i SET unanswered = false
  WHERE i.tx_id = $1 AND i.unanswered AND i.alias_of IS NULL
  RETURNING i.tx_id`;

/**
 * Intents that are refused while their senders wait: the row goes, and with it the claim on the request id. What nobody
 * came to read is thrown away on the way.
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
