import type { FigureRow } from "../../../domain/figures/figures.ts";
import type { Address } from "../../../domain/lane.ts";
import { behind, lists, names, overwritten } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

const COUNTS = "created integer, completed integer, failed integer, fees numeric, detail jsonb" as const;
const FIGURES =
  `signer text, step_seconds integer, at timestamptz, chain_id bigint, instance_id uuid, ${COUNTS}` as const;

/** Rows that one write removes at most, so that it stays short. */
const REMOVED_AT_ONCE = 500;

/**
 * Writes the buckets of one instance, each with its whole count, and removes some that are too old: minutes after a
 * day, hours after a month. A row that another node is removing is skipped, because two nodes that wait for each other
 * would end both writes. Nothing is written if the instance no longer owns the lane of chain $11 and signer $12 under the
 * token $13. The lane is not locked: its transactions must not wait for statistics.
 */
export const writeFigures = taking(FIGURES)("write-figures")`
  WITH minutes AS MATERIALIZED (${old("figures", "26 hours", 60)}
  ), hours AS MATERIALIZED (${old("figures", "31 days", 3_600)}
  ), removed AS (
    DELETE FROM fencepost.figures AS f
    WHERE f.ctid = ANY (ARRAY(SELECT minutes.ctid FROM minutes UNION ALL SELECT hours.ctid FROM hours))
  )
  INSERT INTO fencepost.figures (${names(FIGURES)})
  SELECT * FROM (${lists(FIGURES)}) AS f
  WHERE ${ownsLane(FIGURES)}
  ON CONFLICT (signer, step_seconds, at, chain_id, instance_id) ${overwritten(COUNTS)}
  RETURNING 1`;

/** SQL: the instance of the row owns the lane whose chain, signer and token follow the columns as parameters. */
function ownsLane(columns: string) {
  return `EXISTS (
    SELECT FROM fencepost.lane AS l
    WHERE l.chain_id = ${behind(columns, 1)} AND l.signer = ${behind(columns, 2)} AND l.token = ${behind(columns, 3)}
      AND l.owner_instance = f.instance_id
  )`;
}

/** SQL: some rows of a table that are older than this; of one step only, if the table has several. */
function old(table: string, age: string, stepSeconds?: number) {
  const [step, order] =
    stepSeconds === undefined ? ["", ""] : [`f.step_seconds = ${stepSeconds} AND `, "f.step_seconds, "];
  return `
    SELECT f.ctid FROM fencepost.${table} AS f
    WHERE ${step}f.at < now() - interval '${age}'
    ORDER BY ${order}f.at LIMIT ${REMOVED_AT_ONCE}
    FOR UPDATE SKIP LOCKED`;
}

/** The ranks are sent as the text of an array, because a list of lists must be rectangular. */
const SPEND = "signer text, at timestamptz, chain_id bigint, instance_id uuid, ranks text" as const;

/**
 * Writes the ranks of one instance, and removes some that are too old, as `writeFigures` does and under the same
 * condition. $6, $7, $8: chain, signer and token of the lane.
 */
export const writeSpend = taking(SPEND)("write-spend")`
  WITH days AS MATERIALIZED (${old("spend", "32 days")}
  ), removed AS (
    DELETE FROM fencepost.spend AS f WHERE f.ctid = ANY (ARRAY(SELECT days.ctid FROM days))
  )
  INSERT INTO fencepost.spend (${names(SPEND)})
  SELECT f.signer, f.at, f.chain_id, f.instance_id, f.ranks::double precision[] FROM (${lists(SPEND)}) AS f
  WHERE ${ownsLane(SPEND)}
  ON CONFLICT (signer, at, chain_id, instance_id) ${overwritten("ranks text")}
  RETURNING 1`;

/**
 * Reads the buckets of some signers in a range of time. $1: the signers, or one empty text for the sums of chains; $2:
 * the step; $3, $4: the range; $5: the only chains, or null.
 */
export const readFigures = statement<FigureRow>("read-figures")`
  SELECT f.signer, f.step_seconds, f.at, f.chain_id, f.created, f.completed, f.failed, f.fees, f.detail
  FROM fencepost.figures AS f
  WHERE f.signer = ANY ($1::text[]) AND f.step_seconds = $2 AND f.at >= $3 AND f.at < $4
    AND ($5::bigint[] IS NULL OR f.chain_id = ANY ($5))`;

export interface SpenderRow {
  readonly signer: Address;
  readonly chainId: number;
  readonly completed: number;
  readonly fees: bigint;
}

/**
 * Ranks the signers that paid most in a range of hours, from one row for each lane and day. $1: start of the first day;
 * $2: its hours before the range; $3: start of the last day; $4: its hours up to the end of the range; $5: the only
 * chains, or null; $6: how many.
 */
export const rankSpenders = statement<Pick<SpenderRow, "signer">>("rank-spenders")`${ranked("fencepost.spend")}`;

/** All days of some signers. OFFSET 0: on a small table, the planner would rather read the days of all signers. */
const DAYS_OF_SIGNERS = "(SELECT * FROM fencepost.spend AS own WHERE own.signer = ANY ($7::text[]) OFFSET 0)";

/** Like `rankSpenders`, of some signers only: begins at each of them. $7: the signers. */
export const rankSigners = statement<Pick<SpenderRow, "signer">>("rank-signers")`${ranked(DAYS_OF_SIGNERS)}`;

/** SQL: signers by their rank; an hour without an outcome has the rank of the hour before. */
function ranked(days: string) {
  const at = (hours: string) => `s.ranks[least(cardinality(s.ranks), ${hours})]`;
  const sum = `sum(
    ${at("CASE s.at WHEN $3 THEN $4 ELSE 24 END")}
    - CASE s.at WHEN $1 THEN coalesce(${at("$2")}, 0) ELSE 0 END
  )`;
  return `
  SELECT s.signer FROM ${days} AS s
  WHERE s.at >= $1::timestamptz AND s.at <= $3::timestamptz
    AND ($5::bigint[] IS NULL OR s.chain_id = ANY ($5))
  GROUP BY s.signer, s.chain_id
  HAVING ${sum} > 0
  ORDER BY ${sum} DESC, s.signer, s.chain_id
  LIMIT $6`;
}

/**
 * Reads what some signers paid in a range of hours, highest first. $1, $2: the range; $3: the only chains, or null; $4:
 * the signers; $5: how many.
 */
export const readSpenders = statement<SpenderRow>("read-spenders")`
  SELECT f.signer, f.chain_id, sum(f.completed)::bigint AS completed, sum(f.fees) AS fees
  FROM fencepost.figures AS f
  WHERE f.signer = ANY ($4::text[]) AND f.step_seconds = 3600 AND f.at >= $1 AND f.at < $2 AND (f.completed > 0 OR f.fees <> 0)
    AND ($3::bigint[] IS NULL OR f.chain_id = ANY ($3))
  GROUP BY f.signer, f.chain_id
  ORDER BY sum(f.fees) DESC, sum(f.completed) DESC, f.signer, f.chain_id
  LIMIT $5`;
