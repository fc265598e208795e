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
  WITH minutes AS MATERIALIZED (${old(60, "26 hours")}
  ), hours AS MATERIALIZED (${old(3_600, "31 days")}
  ), removed AS (
    DELETE FROM fencepost.figures AS f
    WHERE f.ctid = ANY (ARRAY(SELECT minutes.ctid FROM minutes UNION ALL SELECT hours.ctid FROM hours))
  )
  INSERT INTO fencepost.figures (${names(FIGURES)})
  SELECT * FROM (${lists(FIGURES)}) AS f
  WHERE EXISTS (
    SELECT FROM fencepost.lane AS l
    WHERE l.chain_id = ${behind(FIGURES, 1)} AND l.signer = ${behind(FIGURES, 2)} AND l.token = ${behind(FIGURES, 3)}
      AND l.owner_instance = f.instance_id
  )
  ON CONFLICT (signer, step_seconds, at, chain_id, instance_id) ${overwritten(COUNTS)}
  RETURNING 1`;

/** SQL: some rows of one step that are older than this. */
function old(stepSeconds: number, age: string) {
  return `
    SELECT f.ctid FROM fencepost.figures AS f
    WHERE f.step_seconds = ${stepSeconds} AND f.at < now() - interval '${age}'
    ORDER BY f.step_seconds, f.at LIMIT ${REMOVED_AT_ONCE}
    FOR UPDATE SKIP LOCKED`;
}

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
 * Reads the signers that paid most in a range of hours. $1, $2: the range; $3: the only chains, or null; $4: the only
 * signers, or null; $5: how many.
 */
export const readSpenders = statement<SpenderRow>("read-spenders")`
  SELECT f.signer, f.chain_id, sum(f.completed)::bigint AS completed, sum(f.fees) AS fees
  FROM fencepost.figures AS f
  WHERE f.step_seconds = 3600 AND f.at >= $1 AND f.at < $2 AND f.signer <> '' AND f.completed > 0
    AND ($3::bigint[] IS NULL OR f.chain_id = ANY ($3)) AND ($4::text[] IS NULL OR f.signer = ANY ($4))
  GROUP BY f.signer, f.chain_id
  ORDER BY sum(f.fees) DESC, sum(f.completed) DESC, f.signer, f.chain_id
  LIMIT $5`;
