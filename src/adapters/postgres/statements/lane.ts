import type { Lane } from "../../../domain/lane.ts";
import type { LaneQueue, LaneSnapshot, SuspendedBy } from "../../../ports/lane-store.ts";
import type { LaneDecisionRecord, LaneRecord } from "../../../ports/query-store.ts";
import { ASKED_LANES, type Flat, LANE, lists, names, type OwnerColumns } from "../rows/columns.ts";
import { statement, taking } from "./statement.ts";

/**
 * Inserts lanes that do not exist yet, free and with token 0. They are inserted in lock order, because two nodes may do
 * this at once.
 */
export const ensureLanes = taking(LANE)("ensure-lanes")`
  INSERT INTO fencepost.lane (${names(LANE)})
  SELECT ${names(LANE)} FROM (${lists(LANE)}) AS k ORDER BY k.chain_id, k.signer
  ON CONFLICT (signer, chain_id) DO NOTHING
  RETURNING chain_id`;

/** Finds which of these lanes exist. */
export const findLanes = taking(LANE)<Lane>("find-lanes")`
  SELECT l.chain_id, l.signer FROM fencepost.lane AS l JOIN ${ASKED_LANES}`;

/**
 * Locks the lane table until COMMIT: waits until no other transaction holds a lock on any lane, and then keeps all
 * others from locking one. Readers are not affected.
 */
export const lockLaneTable = statement("lock-lane-table")`SELECT fencepost.lock_lane_table()`;

/** Waits until no transaction has any of these lanes locked, and locks them in ascending order, as everywhere. */
export const lockLanesByKey = taking(LANE)("lock-lanes-by-key")`
  SELECT 1 FROM fencepost.lane AS l JOIN ${ASKED_LANES}
  ORDER BY l.chain_id, l.signer
  FOR NO KEY UPDATE OF l`;

const TERM = `${LANE}, instance_id uuid, token bigint` as const;
const LEFT = `${TERM}, next_nonce bigint, suspended_by text, reconciled_epoch integer, departed boolean,
  policy_stamp uuid` as const;

/**
 * SQL of the fence: locks the lanes that the given terms (ownerships) still hold, in ascending order, until COMMIT. A
 * takeover waits for this lock. If this statement had to wait for a takeover instead, PostgreSQL evaluates the join
 * again on the changed row, and the lane is not returned. The heartbeat is read, never locked.
 *
 * $1 to $4, an array each: chain, signer, instance, token. Chains and signers are also passed as lists, so that lanes
 * are found by key even if the planner is wrong about the size of the table. `expected`: further conditions that
 * compare the lane `l` with the columns of the term `f` after those four.
 */
const held = (columns: string, expected = "") => `
   SELECT l.chain_id, l.signer, l.owner_instance, l.token, l.next_nonce, l.suspended_by, l.reconciled_epoch,
     l.departed_below, l.policy_stamp, n.node_id
   FROM fencepost.lane AS l
   JOIN (${lists(columns)}) AS f
     ON l.chain_id = f.chain_id AND l.signer = f.signer AND l.owner_instance = f.instance_id AND l.token = f.token${expected}
   JOIN fencepost.node_instance AS n ON n.instance_id = l.owner_instance
   WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
     AND NOT n.dead AND n.expires_at > clock_timestamp()
   ORDER BY l.chain_id, l.signer
   FOR NO KEY UPDATE OF l`;

/** Locks the lanes. First statement of a commit of two round trips: the returned data cannot change until COMMIT. */
export const lockLanes = taking(TERM)<LockedLaneRow>("lock-lanes")`${held(TERM)}`;

/**
 * First statement of a commit of one round trip. The commit was decided from lane data in this node's memory, so this
 * statement ends the transaction unless every lane still has that data and the same term.
 *
 * $1 to $4 as in `lockLanes`; $5 to $7: the remembered next nonce, suspension and epoch; $8: true if retention had
 * removed transactions of the lane, because only then are request ids looked up among the hashes; $9: the version stamp
 * of the policy document that was applied; $10: the transaction's marker.
 */
export const proveLanes = taking(LEFT)("prove-lanes")`
  WITH held AS MATERIALIZED (${held(
    LEFT,
    `
      AND l.next_nonce = f.next_nonce AND l.suspended_by IS NOT DISTINCT FROM f.suspended_by
      AND l.reconciled_epoch = f.reconciled_epoch AND (l.departed_below IS NULL OR f.departed)
      AND l.policy_stamp = f.policy_stamp`,
  )}
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM held), cardinality($1), 'lanes as they were left'), fencepost.require_open($10)`;

export interface LockedLaneRow extends Lane {
  readonly ownerInstance: string;
  readonly token: number;
  readonly nextNonce: number | null;
  readonly suspendedBy: SuspendedBy | null;
  readonly reconciledEpoch: number;
  /** All nonces that retention removed are below this; null if every transaction of the lane is still stored. */
  readonly departedBelow: number | null;
  /**
   * Version stamp of the policy document in force; it cannot change while the lane is locked (statements/policy.ts).
   */
  readonly policyStamp: string;
  readonly nodeId: string;
}

/**
 * Reads the lane of a term (one ownership); no row if the term has ended. The lane is not locked, because writes verify
 * the term again. If the lane's counter of unsigned transactions is zero, the rows are counted: if the counter were
 * wrong, those rows would never be read again. Rows are read in nonce order, so that the index of the lane's live rows
 * is used even if the plan was made when the table was empty.
 */
export const readLane = statement<LaneStateRow>("read-lane")`
  SELECT l.next_nonce AS cursor, l.suspended_by, l.policy_stamp,
    CASE WHEN l.live_allocated > 0 THEN l.live_allocated ELSE (
      SELECT count(*) FROM (
        SELECT FROM fencepost.transaction AS t
        WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state = 'ALLOCATED'
        ORDER BY t.nonce
      ) AS waiting
    ) END AS allocated,
    l.reconciled_epoch >= (SELECT f.epoch FROM fencepost.feed AS f WHERE f.only_row) AS reconciled,
    coalesce((
      SELECT e.next_nonce FROM fencepost.epoch_floor AS e WHERE e.signer = l.signer AND e.chain_id = l.chain_id
    ), 0) AS epoch_floor,
    (SELECT c.genesis_hash FROM fencepost.chain AS c WHERE c.chain_id = l.chain_id) AS genesis_hash
  FROM fencepost.lane AS l
  WHERE l.chain_id = $1 AND l.signer = $2 AND l.owner_instance = $3 AND l.token = $4
    AND (
      SELECT NOT n.dead AND n.expires_at > clock_timestamp() FROM fencepost.node_instance AS n WHERE n.instance_id = $3
    )`;

export type LaneStateRow = Omit<LaneSnapshot, "tracking" | "watched" | "holes" | "reservations"> &
  Pick<LockedLaneRow, "policyStamp">;

/**
 * Lists at most $4 lanes after ($1 signer, $2 chain), up to signer $3. The numbers of open transactions that have a
 * nonce come from counters; only waiting intents and reservations are counted. Optional filters: chains ($5), one
 * node ($6), only lanes that need an operator ($7), and signers ($8). The oldest waiting transaction has the lowest nonce or the
 * lowest id; these differ only if a transaction took a freed nonce.
 */
export const listLanes = statement<LaneListRow>("list-lanes")`
  SELECT l.chain_id, l.signer, l.next_nonce AS cursor, l.suspended_by, l.token, l.acquired_at,
    l.confirmed_total AS confirmed, l.failed_total AS failed,
    o.instance_id, o.node_id, o.url, o.expires_at,
    kept.pending + waiting.pending AS pending,
    kept.stuck,
    (
      SELECT count(*) FROM fencepost.reservation AS r
      WHERE r.signer = l.signer AND r.chain_id = l.chain_id AND r.state = 'RESERVED' AND r.expires_at > clock_timestamp()
    ) AS reserved,
    least(waiting.oldest, CASE WHEN kept.pending > 0 THEN (
      SELECT t.created_at FROM fencepost.transaction AS t
      WHERE t.chain_id = l.chain_id AND t.signer = l.signer AND t.live AND t.state IN ('ALLOCATED', 'TRACKING')
      ORDER BY t.nonce LIMIT 1
    ) END, CASE WHEN kept.pending > 0 THEN (
      SELECT t.created_at FROM fencepost.transaction AS t
      WHERE hashtextextended(t.signer, t.chain_id) >= hashtextextended(l.signer, l.chain_id)
        AND hashtextextended(t.signer, t.chain_id) <= hashtextextended(l.signer, l.chain_id)
        AND t.signer = l.signer AND t.chain_id = l.chain_id AND t.live AND t.state IN ('ALLOCATED', 'TRACKING')
      ORDER BY hashtextextended(t.signer, t.chain_id), t.tx_id LIMIT 1
    ) END) AS oldest_pending_at,
    CASE WHEN kept.pending + kept.stuck > 0 THEN (
      SELECT json_build_object(
        'txId', h.tx_id, 'nonce', h.nonce, 'state', h.state, 'createdAt', h.created_at, 'held', h.held_since IS NOT NULL
      )
      FROM fencepost.transaction AS h
      WHERE h.chain_id = l.chain_id AND h.signer = l.signer AND h.live AND h.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
      ORDER BY h.nonce LIMIT 1
    ) END AS head_of_line
  FROM (
    SELECT * FROM fencepost.lane AS known
    WHERE (known.signer, known.chain_id) > ($1::text, $2::bigint) AND known.signer <= $3::text
      AND ($5::bigint[] IS NULL OR known.chain_id = ANY ($5)) AND ($8::text[] IS NULL OR known.signer = ANY ($8))
      AND ($6::text IS NULL OR known.owner_instance IN (
        SELECT n.instance_id FROM fencepost.node_instance AS n WHERE n.node_id = $6 AND NOT n.dead
      ))
      AND ($7::boolean IS NOT TRUE OR known.suspended OR known.live_stuck > 0
        OR (known.signer, known.chain_id) IN (SELECT o.signer, o.chain_id FROM fencepost.hole AS o)
        OR (known.signer, known.chain_id) IN (
          SELECT t.signer, t.chain_id FROM fencepost.transaction AS t WHERE t.live AND t.held_since IS NOT NULL
        )
        OR (known.live_allocated + known.live_tracking > 0 AND NOT EXISTS (
          SELECT FROM fencepost.node_instance AS n WHERE n.instance_id = known.owner_instance AND NOT n.dead
        )))
    ORDER BY known.signer, known.chain_id LIMIT $4
  ) AS l
  LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance AND NOT o.dead
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(c.count) FILTER (WHERE c.state <> 'STUCK'), 0)::bigint AS pending,
      coalesce(sum(c.count) FILTER (WHERE c.state = 'STUCK'), 0)::bigint AS stuck
    FROM fencepost.live_count AS c
    WHERE c.state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND c.chain_id = l.chain_id AND c.signer = l.signer
  ) AS kept
  CROSS JOIN LATERAL (
    SELECT count(*) AS pending, min(i.created_at) AS oldest FROM fencepost.intake AS i
    WHERE i.signer = l.signer AND i.chain_id = l.chain_id AND i.alias_of IS NULL
      AND (i.awaits IS NULL OR i.approved_at IS NOT NULL)
  ) AS waiting
  ORDER BY l.signer, l.chain_id`;

/** Row of a listed lane. The lane's lowest open transaction is read as JSON, so its dates are text. */
export interface LaneListRow extends Omit<LaneRecord, "lane" | "owner" | "holes" | "headOfLine">, Lane, OwnerColumns {
  readonly headOfLine: (Omit<NonNullable<LaneRecord["headOfLine"]>, "createdAt"> & { createdAt: string }) | null;
}

const LANE_CHANGE = `${LANE}, token bigint, next_nonce bigint, suspended_by text,
  reconciled_epoch integer, confirmed bigint, failed bigint, live_allocated bigint, live_tracking bigint,
  live_stuck bigint, live_confirmed bigint, live_failed bigint` as const;

/**
 * Updates next nonce, suspension and counters of the lanes that a commit changes; all of them are already locked. $1 to
 * $13, one element per lane: chain, signer, token, next nonce, suspension, epoch, newly confirmed, newly failed, and
 * the change in the number of live transactions of each state. $14: the transaction's marker if the response to BEGIN
 * is still outstanding, else null.
 */
export const updateLanes = taking(LANE_CHANGE)("update-lanes")`
  WITH changed AS (
    UPDATE fencepost.lane AS l
    SET next_nonce = w.next_nonce,
      suspended = w.suspended_by IS NOT NULL,
      suspended_by = w.suspended_by,
      reconciled_epoch = w.reconciled_epoch,
      confirmed_total = l.confirmed_total + w.confirmed,
      failed_total = l.failed_total + w.failed,
      live_allocated = l.live_allocated + w.live_allocated,
      live_tracking = l.live_tracking + w.live_tracking,
      live_stuck = l.live_stuck + w.live_stuck,
      live_confirmed = l.live_confirmed + w.live_confirmed,
      live_failed = l.live_failed + w.live_failed
    FROM (${lists(LANE_CHANGE)}) AS w
    WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
      AND l.chain_id = w.chain_id AND l.signer = w.signer AND l.token = w.token
    RETURNING 1
  )
  SELECT fencepost.require_rows((SELECT count(*) FROM changed), cardinality($1), 'lanes'), fencepost.require_open($14)`;

/**
 * Reads the highest nonce in use on each lane: of any transaction, sent or not, or of a reservation that was not
 * released.
 */
export const readBoundNonces = statement<BoundNonceRow>("read-bound-nonces")`
  SELECT l.chain_id, l.signer, greatest(
    (SELECT max(t.nonce) FROM fencepost.transaction AS t WHERE t.chain_id = l.chain_id AND t.signer = l.signer),
    (
      SELECT max(r.nonce) FROM fencepost.reservation AS r
      WHERE r.chain_id = l.chain_id AND r.signer = l.signer AND r.state <> 'RELEASED'
    )
  ) AS nonce
  FROM fencepost.lane AS l
  WHERE l.signer = ANY ($1::text[]) AND l.chain_id = ANY ($2::bigint[])`;

export type BoundNonceRow = Lane & { readonly nonce: number | null };

const DECISION = `${LANE}, action text, actor text, reason text, node_id text, token bigint` as const;

/** Records decisions about a lane, in the transaction that carries them out. */
export const insertLaneDecisions = taking(DECISION)("insert-lane-decisions")`
  INSERT INTO fencepost.lane_decision (${names(DECISION)}, at)
  SELECT ${names(DECISION)}, now() FROM (${lists(DECISION)}) AS d`;

/** Reads the newest decisions about a lane, newest first. */
export const readLaneDecisions = statement<LaneDecisionRecord>("read-lane-decisions")`
  SELECT d.action, d.actor, d.reason, d.node_id, d.token, d.at
  FROM fencepost.lane_decision AS d
  WHERE d.signer = $1 AND d.chain_id = $2
  ORDER BY d.decision_id DESC
  LIMIT $3`;

/**
 * If a lane has at most this many open rows, its queue is counted without mined transactions. Otherwise the lane's
 * counters are used, which include mined ones.
 */
const LOOKED_AT = 500;

/**
 * Reads the queue lengths of lanes. Transactions that are mined but not final are left out on short queues; for long
 * queues the counters of the lane's row are used.
 */
export const readQueues = taking(LANE)<Flat<LaneQueue>>("read-queues")`
  SELECT l.chain_id, l.signer, l.suspended_by IS NOT NULL AS suspended, l.live_stuck > 0 AS is_stuck,
    CASE WHEN l.open > ${LOOKED_AT} THEN l.open ELSE high.waiting END AS ahead,
    coalesce(floor(extract(epoch FROM clock_timestamp() - high.oldest) * 1000), 0)::bigint AS head_age_ms
  FROM (
    SELECT l.*, l.live_allocated + l.live_tracking + l.live_stuck AS open FROM fencepost.lane AS l JOIN ${ASKED_LANES}
  ) AS l
  CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE t.waits) AS waiting, min(t.created_at) FILTER (WHERE t.waits) AS oldest
    FROM (
      SELECT live.created_at,
        live.state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND live.sub_state IS DISTINCT FROM 'MINED' AS waits
      FROM fencepost.transaction AS live
      WHERE live.chain_id = l.chain_id AND live.signer = l.signer AND live.live
      ORDER BY live.nonce DESC LIMIT least(l.open, ${LOOKED_AT})
    ) AS t
  ) AS high`;
