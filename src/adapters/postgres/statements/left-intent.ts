import { lists } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

/** Reads rows of the intake table by transaction id. */
export const readLeft = statement<LeftRow>("read-left")`
  SELECT i.tx_id, i.alias_of, i.awaits IS NOT NULL AS awaits
  FROM fencepost.intake AS i
  WHERE i.tx_id = ANY ($1::uuid[])`;

export interface LeftRow {
  readonly txId: string;
  readonly aliasOf: string | null;
  /** True if a policy requires approval of the intent. */
  readonly awaits: boolean;
}

const DECLINED = "intake_id bigint, problem text";

/**
 * Declines intents that nodes of the previous release queued in the intake table and whose senders still wait. The row
 * is deleted, so that the request id is free again, and the refusal is stored for the sender. Old refusals that were
 * never read are deleted as well.
 */
export const declineIntents = taking(DECLINED)("decline-intents")`
  WITH gone AS (
    DELETE FROM fencepost.intake AS i USING (${lists(DECLINED)}) AS d
    WHERE i.intake_id = ANY ($1::bigint[]) AND i.intake_id = d.intake_id AND i.unanswered
    RETURNING i.tx_id, i.chain_id, d.problem
  ), kept AS (
    INSERT INTO fencepost.declined (tx_id, chain_id, problem, at) SELECT tx_id, chain_id, problem, now() FROM gone
    RETURNING 1
  ), old AS (
    DELETE FROM fencepost.declined WHERE at < now() - interval '10 minutes'
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM kept), cardinality($1), 'declined intake rows')`;
