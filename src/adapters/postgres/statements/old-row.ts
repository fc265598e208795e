import { BEHIND_ITS_COMPLETION_MS, type OldRow } from "../../../domain/cluster/retention.ts";
import type { Lane } from "../../../domain/lane.ts";
import { LANE, lists } from "../rows/columns.ts";
import { changing, counted, statement, taking } from "./statement.ts";

/** Tries to take the lock for truncating the feed. If another node has it, there is nothing to do. */
export const takeFeedTurn = statement<{ readonly taken: boolean }>("take-feed-turn")`
  SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost feed shortened', 0)) AS taken`;

/**
 * SQL: selects completions above the feed's truncation mark. Without this condition the index scan would begin at
 * deleted rows that are not vacuumed yet.
 */
const FIRST = "c.seq > (SELECT f.truncated_through FROM fencepost.feed AS f WHERE f.only_row)";

/** Reads the lowest $1 completions of the feed. */
export const readLowest = statement<{ readonly seq: number; readonly at: Date }>("read-lowest")`
  SELECT c.seq, c.at FROM fencepost.completion AS c WHERE ${FIRST} ORDER BY c.seq LIMIT $1`;

/** Deletes the completions up to number $1; $2 is their expected count. */
export const deleteCompletions = counted("delete-completions", "completions that leave", "$2")`
  DELETE FROM fencepost.completion AS c WHERE c.seq <= $1`;

/**
 * Records that the feed is truncated through $1. It runs in the transaction that deletes the completions, and last
 * before COMMIT, because it locks the feed's row. A caller whose position is below $1 sees either the truncation mark
 * or the completions, never a gap.
 */
export const markTruncated = counted("mark-truncated", "feeds", "1")`
  UPDATE fencepost.feed AS f SET truncated_through = greatest(f.truncated_through, $1) WHERE f.only_row`;

/**
 * SQL: time before which a transaction must have become final to be removed. It is at least $3 milliseconds ago, and
 * before the oldest completion still in the feed (domain/cluster/retention.ts). `bound` is the lowest transaction id of
 * that time. Ids begin with the time of creation, so a transaction with a higher id was created later and cannot have
 * been final before.
 */
const HORIZON = `
  SELECT h.at, h.oldest_in_feed, (
      lpad(to_hex((extract(epoch FROM h.at) * 1000)::bigint), 12, '0') || repeat('0', 20)
    )::uuid AS bound
  FROM (
    SELECT f.oldest_in_feed,
      least(now() - $3::bigint * interval '1 millisecond', f.oldest_in_feed)
        - interval '${BEHIND_ITS_COMPLETION_MS} milliseconds' AS at
    FROM (SELECT (SELECT c.at FROM fencepost.completion AS c WHERE ${FIRST} ORDER BY c.seq LIMIT 1) AS oldest_in_feed) AS f
  ) AS h`;

/**
 * SQL: final rows of lane `k` with outcome `o`, oldest ids first. It uses the index that also serves lists of one
 * signer's transactions.
 */
const oldOf = (most: string) => `
    SELECT low.* FROM fencepost.transaction AS low
    WHERE hashtextextended(low.outcome || low.signer, low.chain_id) >= hashtextextended(o.outcome || k.signer, k.chain_id)
      AND hashtextextended(low.outcome || low.signer, low.chain_id) <= hashtextextended(o.outcome || k.signer, k.chain_id)
      AND low.outcome IS NOT NULL AND low.tx_id < horizon.bound AND low.updated_at < horizon.at
      AND low.outcome = o.outcome AND low.signer = k.signer AND low.chain_id = k.chain_id
    ORDER BY hashtextextended(low.outcome || low.signer, low.chain_id), low.tx_id
    LIMIT ${most}`;

const OUTCOMES = `(VALUES ('CONFIRMED'), ('FAILED_FINAL')) AS o(outcome)`;

/** Finds which of these lanes have rows that are old enough to be removed. */
export const findOldLanes = taking(LANE)<Lane>("find-old-lanes")`
  WITH horizon AS MATERIALIZED (${HORIZON})
  SELECT k.chain_id, k.signer
  FROM (${lists(LANE)}) AS k
  WHERE (
    SELECT count(*) FROM horizon CROSS JOIN ${OUTCOMES} CROSS JOIN LATERAL (${oldOf("1")}) AS t
  ) > 0`;

/**
 * Lists lanes without an owner whose signer no live instance has. Lanes that are suspended because the database may
 * have lost commits are left out: their rows are kept for an operator.
 */
export const listAbandonedLanes = statement<Lane>("list-abandoned-lanes")`
  WITH live AS MATERIALIZED (
    SELECT n.instance_id, n.signers FROM fencepost.node_instance AS n
    WHERE NOT n.dead AND n.expires_at > clock_timestamp()
  )
  SELECT l.chain_id, l.signer
  FROM fencepost.lane AS l
  WHERE l.suspended_by IS DISTINCT FROM 'HISTORY'
    AND l.signer NOT IN (SELECT unnest(live.signers) FROM live)
    AND (l.owner_instance IS NULL OR l.owner_instance NOT IN (SELECT live.instance_id FROM live))`;

/** Reads the oldest removable rows of these lanes, at most $4 of each outcome and lane. */
export const readOldRows = taking(LANE)<OldTransactionRow>("read-old-rows")`
  WITH horizon AS MATERIALIZED (${HORIZON})
  SELECT t.tx_id, t.chain_id, t.signer, t.nonce, t.state, t.live, t.updated_at, horizon.oldest_in_feed
  FROM (${lists(LANE)}) AS k
  CROSS JOIN horizon
  CROSS JOIN ${OUTCOMES}
  CROSS JOIN LATERAL (${oldOf("$4")}) AS t`;

export interface OldTransactionRow extends Lane, OldRow {
  readonly txId: string;
  readonly nonce: number | null;
  readonly oldestInFeed: Date | null;
}

const DEPARTED = `${LANE}, below bigint` as const;

/**
 * Records on each lane that transactions below nonce `below` may have been removed. `below`: one above the highest
 * removed nonce.
 */
export const markDeparted = changing(DEPARTED, "mark-departed", "lanes that something leaves")`
  UPDATE fencepost.lane AS l SET departed_below = greatest(l.departed_below, d.below)
  FROM (${lists(DEPARTED)}) AS d
  WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[]) AND l.chain_id = d.chain_id AND l.signer = d.signer`;

/**
 * Stores hashes of the request ids that belong to the transactions $1: their own, those of their pool requests, and
 * those of the reservations they were made from.
 */
export const keepRequests = statement("keep-requests")`
  INSERT INTO fencepost.spent_request (digest, chain_id, left_at)
  SELECT fencepost.request_digest(t.chain_id, t.signer, t.request_id), t.chain_id, now()
  FROM (SELECT own.* FROM fencepost.transaction AS own WHERE own.tx_id = ANY ($1::uuid[]) OFFSET 0) AS t
  WHERE t.owns_request AND t.request_id IS NOT NULL
  UNION
  SELECT fencepost.request_digest(c.chain_id, 'pool ' || c.pool, c.request_id), c.chain_id, now()
  FROM fencepost.pool_choice AS c
  WHERE c.tx_id = ANY ($1::uuid[]) AND c.request_id IS NOT NULL
  UNION
  SELECT fencepost.request_digest(r.chain_id, r.signer, r.request_id), r.chain_id, now()
  FROM fencepost.transaction AS t
  CROSS JOIN LATERAL (
    SELECT own.* FROM fencepost.reservation AS own
    WHERE own.chain_id = t.chain_id AND own.signer = t.signer AND own.nonce = t.nonce AND own.state <> 'RELEASED'
    OFFSET 0
  ) AS r
  WHERE t.tx_id = ANY ($1::uuid[]) AND r.tx_id = t.tx_id AND r.request_id IS NOT NULL
  ORDER BY 1
  ON CONFLICT (digest) DO NOTHING`;

/**
 * Deletes the transactions $1 and all rows that depend on them, such as the reservations they were made from and their
 * aliases in the intake table. Each transaction is checked again to be final. The check is a CASE, because a plain
 * condition would make PostgreSQL 15 scan the index of all final rows.
 */
export const deleteTransactions = statement("delete-transactions")`
  WITH gone AS (
    DELETE FROM fencepost.transaction AS t
    WHERE t.tx_id = ANY ($1::uuid[]) AND CASE WHEN t.live THEN false ELSE t.outcome IS NOT NULL END
    RETURNING t.tx_id, t.chain_id, t.signer, t.nonce, t.request_id
  ), payloads AS (
    DELETE FROM fencepost.payload AS p WHERE p.tx_id = ANY ($1::uuid[])
  ), steps AS (
    DELETE FROM fencepost.step AS s WHERE s.tx_id = ANY ($1::uuid[])
  ), attempts AS (
    DELETE FROM fencepost.attempt AS a WHERE a.tx_id = ANY ($1::uuid[])
  ), receipts AS (
    DELETE FROM fencepost.receipt AS r WHERE r.tx_id = ANY ($1::uuid[])
  ), charges AS (
    DELETE FROM fencepost.charge AS c WHERE c.tx_id = ANY ($1::uuid[])
  ), queued AS (
    DELETE FROM fencepost.queued_change AS q WHERE q.tx_id = ANY ($1::uuid[])
  ), pooled AS (
    DELETE FROM fencepost.pool_choice AS c WHERE c.tx_id = ANY ($1::uuid[])
  ), reserved AS (
    DELETE FROM fencepost.reservation AS r WHERE r.reservation_id = ANY (ARRAY(
      SELECT own.reservation_id FROM gone CROSS JOIN LATERAL (
        SELECT each.reservation_id, each.tx_id FROM fencepost.reservation AS each
        WHERE each.chain_id = gone.chain_id AND each.signer = gone.signer AND each.nonce = gone.nonce
          AND each.state <> 'RELEASED'
        OFFSET 0
      ) AS own
      WHERE own.tx_id = gone.tx_id
    ))
  ), aliases AS (
    DELETE FROM fencepost.intake AS i WHERE i.intake_id = ANY (ARRAY(
      SELECT own.intake_id FROM gone CROSS JOIN LATERAL (
        SELECT each.intake_id, each.alias_of FROM fencepost.intake AS each
        WHERE each.request_id = gone.request_id AND each.request_id IS NOT NULL
        OFFSET 0
      ) AS own
      WHERE own.alias_of = gone.tx_id
    ))
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM gone), cardinality($1), 'transactions that leave')`;
