import type { Decision } from "../../../ports/lane-store.ts";
import type { HistoryRecord } from "../../../ports/query-store.ts";
import { lists, names } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

const STEP = `tx_id uuid, ordinal integer, chain_id bigint, event text, from_state text, state text, sub_state text,
  node_id text, token bigint, reason text, actor text, audit jsonb, count integer` as const;
const WRITTEN = `${STEP}, at timestamptz` as const;

/**
 * Appends history steps, except those that are stored as columns of their transaction's row (commit/ordinary-life.ts).
 * Each step's ordinal was computed while the lane was locked: if it already exists, the commit must end with an error.
 * $1 to $14: one array per column; null for a column that is empty in all steps.
 */
export const writeHistory = taking(WRITTEN)("write-history")`
  INSERT INTO fencepost.step (${names(STEP)}, first_at, last_at)
  SELECT ${names(STEP)}, coalesce(at, now()), coalesce(at, now())
  FROM (${lists(WRITTEN)}) AS s`;

const REPEAT = "tx_id uuid, ordinal integer, count integer, node_id text, token bigint, reason text";

/**
 * Increases the count of a transaction's last history step if the same step happens again, and stores the newest node,
 * reason and time. A step that was stored as a column of its transaction's row becomes a separate row (the view's
 * trigger).
 */
export const repeatHistory = changing(REPEAT, "repeat-history", "repeated steps")`
  UPDATE fencepost.history AS h
  SET count = h.count + s.count, node_id = s.node_id, token = s.token, reason = s.reason, last_at = now()
  FROM (${lists(REPEAT)}) AS s
  WHERE h.tx_id = ANY ($1::uuid[]) AND h.tx_id = s.tx_id AND h.ordinal = s.ordinal`;

/** Reads the history of a transaction, first to last. */
export const readHistory = statement<HistoryRow>("read-history")`
  SELECT h.ordinal, h.event, h.from_state, h.state, h.sub_state, h.node_id, h.token, h.reason, h.actor, h.audit,
    h.count, h.first_at, h.last_at
  FROM fencepost.history AS h
  WHERE h.tx_id = $1
  ORDER BY h.ordinal`;

export interface HistoryRow extends Omit<HistoryRecord, "decision"> {
  readonly actor: string | null;
  readonly audit: Decision["audit"];
}
