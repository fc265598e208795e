import type { revived } from "../../../domain/troubles/rows.ts";
import type { PastDatabase, PastInstance, TakeoverRecord } from "../../../ports/sight-store.ts";
import { ASKED_LANES, type Flat, LANE } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

/**
 * Records the previous owners of the locked lanes ($1, $2) that instance $3 is about to take. Runs before the takeover
 * in the same transaction, so that both apply to the same lanes. A released lane has no owner; for it, the last node
 * that took it is recorded.
 */
export const insertTakeovers = taking(LANE)("insert-takeovers")`
  INSERT INTO fencepost.takeover (chain_id, signer, from_node, to_node, token, why, at)
  SELECT l.chain_id, l.signer, coalesce(o.node_id, (
      SELECT last.to_node FROM fencepost.takeover AS last
      WHERE last.signer = l.signer AND last.chain_id = l.chain_id ORDER BY last.takeover_id DESC LIMIT 1
    )), (SELECT n.node_id FROM fencepost.node_instance AS n WHERE n.instance_id = $3), l.token + 1,
    CASE WHEN l.owner_instance IS NULL THEN 'it was given back, or its term had ended'
      WHEN o.expires_at <= clock_timestamp() THEN 'the heartbeat of its node had run out'
      ELSE 'its node ended, or was declared dead' END,
    clock_timestamp()
  FROM fencepost.lane AS l
  JOIN ${ASKED_LANES}
  LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance
  WHERE l.token > 0`;

/** Number of takeover records that are kept. */
const KEPT = 10_000;

/** Deletes all takeover records except the newest. */
export const purgeTakeovers = statement("purge-takeovers")`
  DELETE FROM fencepost.takeover AS t
  WHERE t.takeover_id <= (SELECT max(newest.takeover_id) FROM fencepost.takeover AS newest) - ${KEPT}`;

/** Lists the newest $1 takeovers. */
export const listTakeovers = statement<Flat<TakeoverRecord>>("list-takeovers")`
  SELECT t.chain_id, t.signer, t.from_node AS "from", t.to_node AS "to", t.token, t.why, t.at
  FROM fencepost.takeover AS t
  ORDER BY t.takeover_id DESC LIMIT $1`;

/** Lists the newest $1 instances. Instances that ended a day or more ago are missing, because they are deleted. */
export const listPastInstances = statement<PastInstance>("list-past-instances")`
  SELECT n.node_id, n.instance_id, n.version, n.started_at, n.heartbeat_at,
    CASE WHEN n.dead THEN 'gone' WHEN n.expires_at <= clock_timestamp() THEN 'expired' WHEN n.draining THEN 'draining'
      ELSE 'alive' END AS state
  FROM fencepost.node_instance AS n
  ORDER BY n.started_at DESC, n.instance_id LIMIT $1`;

/** Lists the newest $1 histories of the database. A restore or a failover begins a new history. */
export const listPastDatabases = statement<PastDatabase>("list-past-databases")`
  SELECT h.epoch, h.system_identifier, h.timeline, h.may_have_lost, h.seen_at
  FROM fencepost.database_history AS h
  ORDER BY h.ordinal DESC LIMIT $1`;

/** Stores instance $1's report: the problems ($2) that only this instance can find. Replaces its earlier report. */
export const writeReport = statement<{ readonly instanceId: string }>("write-report")`
  INSERT INTO fencepost.node_report AS r (instance_id, findings, at) VALUES ($1, $2::jsonb, clock_timestamp())
  ON CONFLICT (instance_id) DO UPDATE SET findings = excluded.findings, at = excluded.at
  RETURNING r.instance_id`;

/**
 * SQL: true if an instance's heartbeat is at most 15 minutes old. For this long, the reports of ended instances are
 * read. From them, a node that finds the same problem learns when the problem began.
 */
const DATES = "n.heartbeat_at > clock_timestamp() - interval '15 minutes'";

const REPORTS = `SELECT r.instance_id, r.findings FROM fencepost.node_report AS r
  JOIN fencepost.node_instance AS n ON n.instance_id = r.instance_id`;

export const listReports = statement<ReportRow>("list-reports")`
  ${REPORTS} WHERE NOT n.dead AND n.expires_at > clock_timestamp() ORDER BY r.instance_id`;

export const listEndedReports = statement<ReportRow>("list-ended-reports")`
  ${REPORTS} WHERE (n.dead OR n.expires_at <= clock_timestamp()) AND ${DATES} ORDER BY r.instance_id`;

export interface ReportRow {
  readonly instanceId: string;
  readonly findings: readonly Parameters<typeof revived>[0][];
}

export const purgeReports = statement("purge-reports")`
  DELETE FROM fencepost.node_report AS r
  WHERE NOT EXISTS (
    SELECT FROM fencepost.node_instance AS n WHERE n.instance_id = r.instance_id AND (NOT n.dead OR ${DATES})
  )`;
