import type { Decision } from "../../../ports/lane-store.ts";
import type { HistoryRecord } from "../../../ports/query-store.ts";
import { lists, names } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

const STEP = `tx_id uuid, ordinal integer, chain_id bigint, event text, from_state text, state text, sub_state text,
  node_id text, token bigint, reason text, actor text, audit jsonb, count integer` as const;
const WRITTEN = `${STEP}, at timestamptz` as const;

/**
 * Appends history steps that are not columns of their transaction (commit/ordinary-life.ts). The ordinal of each was
 * computed while the lane was locked: an ordinal that already exists must end the commit with an error. $1 to $14, an
 * array of steps each; a column that is empty for all is null.
 */
export const writeHistory = taking(WRITTEN)("write-history")`
  INSERT INTO fencepost.step (${names(STEP)}, first_at, last_at)
  SELECT ${names(STEP)}, coalesce(at, now()), coalesce(at, now())
  FROM (${lists(WRITTEN)}) AS s`;

const REPEAT = "tx_id uuid, ordinal integer, count integer, node_id text, token bigint, reason text";

/**
 * Counts history steps that repeat the last one of their transaction, with node, reason and time of the newest. A step
 * that was a column of its transaction's row becomes a row of its own (the view's trigger).
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
