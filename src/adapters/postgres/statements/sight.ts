import type { Lane } from "../../../domain/lane.ts";
import type { TroubledLane, TroubledTransaction, UnownedLane } from "../../../domain/troubles/find.ts";
import type { LaneNonces, OldestOpen, Pulse, Totals } from "../../../ports/sight-store.ts";
import { type Flat, LANE_TOTALS } from "../rows/columns.ts";
import { COUNT_OPEN } from "../rows/notice-parts.ts";
import { statement } from "./statement.ts";

/**
 * Statements for overviews of the whole cluster. Each scans an index of exceptional rows, or the newest rows. OFFSET 0
 * keeps look-ups by key separate: written as a join, they would make the planner hash the whole table, because nested
 * loops are disabled.
 */

const TROUBLED = "l.suspended OR l.live_stuck > 0";

/** Lists at most $1 lanes that are suspended or stuck, and at most $1 lanes with a nonce hole. */
export const listTroubledLanes = statement<TroubledLaneRow>("list-troubled-lanes")`
  WITH troubled AS MATERIALIZED (
    (SELECT l.signer, l.chain_id FROM fencepost.lane AS l WHERE ${TROUBLED} ORDER BY l.signer, l.chain_id LIMIT $1)
    UNION
    (SELECT h.signer, h.chain_id FROM fencepost.hole AS h GROUP BY h.signer, h.chain_id ORDER BY h.signer, h.chain_id LIMIT $1)
  )
  SELECT l.chain_id, l.signer, l.suspended_by, l.live_allocated + l.live_tracking + l.live_stuck AS open,
    head.tx_id AS head_tx_id, head.nonce AS head_nonce, head.state AS head_state,
    coalesce(stuck.first_at, head.updated_at) AS head_since,
    hole.nonce AS hole_nonce, hole.detail AS hole_detail, hole.since AS hole_since,
    decision.actor, decision.reason, decision.at AS decided_at
  FROM troubled
  CROSS JOIN LATERAL (
    SELECT * FROM fencepost.lane AS own
    WHERE own.signer = troubled.signer AND own.chain_id = troubled.chain_id OFFSET 0
  ) AS l
  LEFT JOIN LATERAL (
    SELECT t.tx_id, t.nonce, t.state, t.updated_at FROM fencepost.transaction AS t
    WHERE t.chain_id = l.chain_id AND t.signer = l.signer AND t.live AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
      AND t.sub_state IS DISTINCT FROM 'MINED'
    ORDER BY t.nonce LIMIT 1
  ) AS head ON true
  LEFT JOIN LATERAL (
    SELECT s.first_at FROM fencepost.step AS s
    WHERE s.tx_id = head.tx_id AND s.event = 'stick' ORDER BY s.ordinal LIMIT 1
  ) AS stuck ON head.state = 'STUCK'
  LEFT JOIN LATERAL (
    SELECT h.nonce, h.detail, h.since FROM fencepost.hole AS h
    WHERE h.signer = l.signer AND h.chain_id = l.chain_id ORDER BY h.nonce LIMIT 1
  ) AS hole ON true
  LEFT JOIN LATERAL (
    SELECT d.actor, d.reason, d.at FROM fencepost.lane_decision AS d
    WHERE d.signer = l.signer AND d.chain_id = l.chain_id ORDER BY d.decision_id DESC LIMIT 1
  ) AS decision ON l.suspended
  ORDER BY l.signer, l.chain_id`;

type Member<Of extends "head" | "hole" | "decision"> = NonNullable<TroubledLane[Of]>;

/**
 * A lane with a problem: its lowest open transaction (head), its lowest nonce hole, and the decision that suspended it.
 * If one of these is missing, its columns are null.
 */
export interface TroubledLaneRow extends Lane, Pick<TroubledLane, "suspendedBy" | "open"> {
  readonly headTxId: string | null;
  readonly headNonce: Member<"head">["nonce"];
  readonly headState: Member<"head">["state"];
  readonly headSince: Date;
  readonly holeNonce: number | null;
  readonly holeDetail: string;
  readonly holeSince: Date;
  readonly actor: string | null;
  readonly reason: string;
  readonly decidedAt: Date;
}

/**
 * Lists at most $1 lanes that have open transactions or intents and no live owner: they were never owned, released, or
 * their owner is dead. An intent may be for a lane that has no row yet. Intents that wait for approval are left out,
 * because no lane keeps them waiting. The oldest transaction is searched from the nonce on that the census uses
 * (census.ts).
 */
export const listUnownedLanes = statement<Flat<UnownedLane>>("list-unowned-lanes")`
  WITH unowned AS MATERIALIZED (
    SELECT coalesce(l.chain_id, w.chain_id) AS chain_id, coalesce(l.signer, w.signer) AS signer,
      coalesce(l.live_allocated + l.live_tracking + l.live_stuck, 0) + coalesce(w.intents, 0) AS open,
      l.next_nonce - (l.live_allocated + l.live_tracking + l.live_stuck) - 1000 AS lowest, w.oldest, o.node_id,
      o.heartbeat_at
    FROM fencepost.lane AS l
    FULL JOIN (
      SELECT i.signer, i.chain_id, count(*) AS intents, min(i.created_at) AS oldest FROM fencepost.intake AS i
      WHERE i.alias_of IS NULL AND (i.awaits IS NULL OR i.approved_at IS NOT NULL)
      GROUP BY i.signer, i.chain_id
    ) AS w ON w.signer = l.signer AND w.chain_id = l.chain_id
    LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance
    WHERE (l.owner_instance IS NULL OR coalesce(o.dead, true))
      AND (l.live_allocated + l.live_tracking + l.live_stuck > 0 OR w.intents > 0)
    ORDER BY 2, 1 LIMIT $1
  )
  SELECT u.chain_id, u.signer, u.open, u.node_id, coalesce(least(u.oldest, head.created_at), clock_timestamp()) AS oldest_at,
    coalesce(u.heartbeat_at, (
      SELECT max(n.heartbeat_at) FROM fencepost.node_instance AS n WHERE u.signer = ANY (n.signers)
    )) AS held_at
  FROM unowned AS u
  LEFT JOIN LATERAL (
    SELECT t.created_at FROM fencepost.transaction AS t
    WHERE t.chain_id = u.chain_id AND t.signer = u.signer AND t.live AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
      AND t.nonce >= u.lowest
    ORDER BY t.nonce LIMIT 1
  ) AS head ON true
  ORDER BY u.signer, u.chain_id`;

/** Lists at most $1 transactions that an operator has put on hold. */
export const listHeld = statement<Flat<TroubledTransaction>>("list-held")`
  SELECT t.tx_id, t.chain_id, t.signer, t.nonce, t.held_since AS since,
    l.live_allocated + l.live_tracking + l.live_stuck AS open
  FROM (
    SELECT held.tx_id, held.chain_id, held.signer, held.nonce, held.held_since FROM fencepost.transaction AS held
    WHERE held.live AND held.held_since IS NOT NULL
    ORDER BY held.chain_id, held.signer, held.nonce LIMIT $1
  ) AS t
  CROSS JOIN LATERAL (
    SELECT own.live_allocated, own.live_tracking, own.live_stuck FROM fencepost.lane AS own
    WHERE own.signer = t.signer AND own.chain_id = t.chain_id OFFSET 0
  ) AS l
  ORDER BY t.chain_id, t.signer, t.nonce`;

/** Lists at most $1 transactions that wait for approval, the oldest first. */
export const listAwaiting = statement<Flat<TroubledTransaction>>("list-awaiting")`
  SELECT i.tx_id, i.chain_id, i.signer, NULL::bigint AS nonce, i.created_at AS since, 0::bigint AS open
  FROM fencepost.intake AS i
  WHERE i.awaits IS NOT NULL AND i.approved_at IS NULL AND i.alias_of IS NULL
  ORDER BY i.intake_id LIMIT $1`;

/**
 * Counts the problems that are left out of the lists: of each kind, those beyond the first $1. Uses the small index of
 * each kind.
 */
export const countTroubles = statement<{ readonly at: Date; readonly more: number }>("count-troubles")`
  SELECT clock_timestamp() AS at,
    greatest(0, (SELECT count(*) FROM fencepost.lane AS l WHERE ${TROUBLED}) - $1::bigint)
    + greatest(0, (
      SELECT count(*) FROM fencepost.transaction AS t WHERE t.live AND t.held_since IS NOT NULL
    ) - $1::bigint)
    + greatest(0, (
      SELECT count(*) FROM fencepost.intake AS i
      WHERE i.awaits IS NOT NULL AND i.approved_at IS NULL AND i.alias_of IS NULL
    ) - $1::bigint)
    + greatest(0, (${COUNT_OPEN}) - $1::bigint) AS more`;

/** Sums the counts on the lanes' rows: of these signers ($1) and chains ($2), or of all if null. */
export const sumLanes = statement<Omit<Totals, "states"> & Totals["states"]>("sum-lanes")`
  SELECT clock_timestamp() AS at, count(*) AS lanes, ${LANE_TOTALS},
    (
      SELECT count(*) FROM fencepost.intake AS i
      WHERE i.alias_of IS NULL AND ($1::text[] IS NULL OR i.signer = ANY ($1::text[]))
        AND ($2::bigint[] IS NULL OR i.chain_id = ANY ($2::bigint[]))
    ) AS "CREATED"
  FROM fencepost.lane AS l
  WHERE ($1::text[] IS NULL OR l.signer = ANY ($1::text[])) AND ($2::bigint[] IS NULL OR l.chain_id = ANY ($2::bigint[]))`;

/** Number of newest rows from which a rate is computed. */
const NEWEST = 2_000;
/** Number of newest final transactions whose durations are read. */
const TIMED = 200;
const PAST = "interval '5 minutes'";

/**
 * SQL: rate per minute over the last five minutes, or over a shorter time if the rows that are read do not go back that
 * far.
 */
const perMinute = (times: string) => `(
    SELECT CASE WHEN count(*) < ${NEWEST} THEN count(*) / 5.0
      ELSE count(*) * 60.0 / greatest(1, extract(epoch FROM clock_timestamp() - min(recent.at))) END
    FROM (${times}) AS recent WHERE recent.at > clock_timestamp() - ${PAST}
  )::float8`;

/** Reads rates and durations of the newest transactions. Transaction ids are in the order of creation. */
export const readPulse = statement<Pulse>("read-pulse")`
  SELECT ${perMinute(`SELECT t.created_at AS at FROM fencepost.transaction AS t ORDER BY t.tx_id DESC LIMIT ${NEWEST}`)} AS created_per_minute,
  ${perMinute(`
    SELECT c.at FROM (
      SELECT n.at, n.settled FROM fencepost.completion AS n ORDER BY n.seq DESC LIMIT ${NEWEST}
    ) AS c WHERE c.settled`)} AS completed_per_minute,
  ARRAY(
    SELECT greatest(0, extract(epoch FROM c.at - t.created_at))::float8
    FROM (SELECT n.tx_id, n.at, n.settled FROM fencepost.completion AS n ORDER BY n.seq DESC LIMIT ${TIMED}) AS c
    CROSS JOIN LATERAL (
      SELECT own.created_at FROM fencepost.transaction AS own WHERE own.tx_id = c.tx_id OFFSET 0
    ) AS t
    WHERE c.settled
  ) AS seconds_to_finality`;

/** Number of the oldest live rows that are read to find the oldest open transaction. */
const LOOKED_AT = 1_000;

/**
 * Finds the oldest open transaction of each chain ($1), and whether the search reached its row limit. Ids are in the
 * order of creation. Both columns of the index are compared, so that the planner scans this index and no other
 * (page-scopes.ts).
 */
export const readOldestOpen = statement<OldestOpenRow>("read-oldest-open")`
  SELECT scope.chain_id, seen.is_cut_short, seen.oldest FROM unnest($1::bigint[]) AS scope (chain_id)
  CROSS JOIN LATERAL (
    SELECT count(*) >= ${LOOKED_AT} AS is_cut_short, (array_agg(
      json_build_object('txId', entry.tx_id, 'signer', entry.signer, 'nonce', entry.nonce, 'createdAt', entry.created_at)
      ORDER BY entry.tx_id
    ) FILTER (WHERE entry.state IN ('ALLOCATED', 'TRACKING', 'STUCK')))[1] AS oldest
    FROM (
      SELECT t.tx_id, t.signer, t.nonce, t.created_at, t.state FROM fencepost.transaction AS t
      WHERE (t.chain_id, t.tx_id) > (scope.chain_id, '00000000-0000-0000-0000-000000000000') AND t.chain_id <= scope.chain_id
        AND t.live
      ORDER BY t.chain_id, t.tx_id LIMIT ${LOOKED_AT}
    ) AS entry
  ) AS seen`;

export interface OldestOpenRow {
  readonly chainId: number;
  /** True if the search reached its row limit, so that more rows would have to be read. */
  readonly isCutShort: boolean;
  /** The oldest open transaction. It is read as JSON, which has no dates, so `createdAt` is text. */
  readonly oldest: (Omit<OldestOpen, "lane" | "createdAt"> & Pick<Lane, "signer"> & { createdAt: string }) | null;
}

/** Reads the lane's next nonce, and the lowest of its nonces that is not settled. $1: chain, $2: signer. */
export const readNonceEnds = statement<Pick<LaneNonces, "cursor" | "departedBelow" | "firstOpen">>("read-nonce-ends")`
  SELECT l.next_nonce AS cursor, coalesce(l.departed_below, 0) AS departed_below, least(
    (
      SELECT t.nonce FROM fencepost.transaction AS t
      WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
      ORDER BY t.nonce LIMIT 1
    ),
    (SELECT min(h.nonce) FROM fencepost.hole AS h WHERE h.signer = $2 AND h.chain_id = $1),
    (
      SELECT min(r.nonce) FROM fencepost.reservation AS r
      WHERE r.signer = $2 AND r.chain_id = $1 AND r.state = 'RESERVED'
    )
  ) AS first_open
  FROM fencepost.lane AS l WHERE l.signer = $2 AND l.chain_id = $1`;

/** Lists the transactions that hold the nonces from $3 to $4 of the lane ($1: chain, $2: signer). */
export const listNonces = statement<LaneNonces["transactions"][number]>("list-nonces")`
  SELECT t.nonce, t.tx_id, t.state, t.sub_state, t.held_since IS NOT NULL AS held
  FROM fencepost.transaction AS t
  WHERE t.chain_id = $1 AND t.signer = $2 AND t.nonce >= $3 AND t.nonce <= $4
  ORDER BY t.chain_id, t.signer, t.nonce`;

export const listReservedNonces = statement<LaneNonces["reservations"][number]>("list-reserved-nonces")`
  SELECT r.nonce, r.reservation_id, r.state FROM fencepost.reservation AS r
  WHERE r.chain_id = $1 AND r.signer = $2 AND r.nonce >= $3 AND r.nonce <= $4 AND r.state <> 'RELEASED'
  ORDER BY r.nonce`;

export const listHolesBetween = statement<LaneNonces["holes"][number]>("list-holes-between")`
  SELECT h.nonce, h.detail FROM fencepost.hole AS h
  WHERE h.signer = $2 AND h.chain_id = $1 AND h.nonce >= $3 AND h.nonce <= $4
  ORDER BY h.nonce`;
