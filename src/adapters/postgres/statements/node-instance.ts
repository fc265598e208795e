import type { Address } from "../../../domain/lane.ts";
import type { InstanceRecord } from "../../../ports/lease-store.ts";
import { END_VANISHED, NOTE_VANISHED } from "../rows/notice-parts.ts";
import { SESSION_LOCKS } from "../rows/session-locks.ts";
import { counted, statement } from "./statement.ts";

/**
 * Serialises registrations, so that each checks the database's history alone. It does not lock the feed's row, because
 * completions must not wait for registrations.
 */
export const lockRegistration = statement("lock-registration")`
  SELECT pg_advisory_xact_lock(hashtextextended('fencepost registration', 0))`;

/**
 * Inserts an instance, and ends the notice that its node had vanished. All times are the database's clock at the
 * insert, not at the transaction's start. $14: the marker of the transaction if it is sent in one write, else null.
 */
export const insertInstance = statement("insert-instance")`
  WITH back AS (${END_VANISHED}
  )
  INSERT INTO fencepost.node_instance (
    instance_id, node_id, url, version, mode, started_at, heartbeat_at, expires_at, chains, signers,
    stands_back, public_key, key_proof, keys_away, knows_migration
  )
  SELECT $1, $2, $3, $4, $5, c.now, c.now, c.now + $6::bigint * interval '1 millisecond', $7::bigint[], $8::text[],
    $9::boolean, $10, $11, $12::text[], $13
  FROM (SELECT clock_timestamp() AS now) AS c
  WHERE fencepost.require_open($14)`;

/**
 * Ends the earlier instances of a process for good, which frees their lanes. $2: the marker of the transaction, or
 * null.
 */
export const replaceInstance = statement("replace-instance")`
  UPDATE fencepost.node_instance AS n SET dead = true WHERE n.instance_id = ANY ($1::uuid[]) AND fencepost.require_open($2)`;

/**
 * SQL: renews the heartbeat of an instance, which covers every lane that it holds. It uses `clock_timestamp()`. With
 * `now()`, the time of the transaction's start, a renewal that waited could already be expired when written.
 */
const RENEWAL = `UPDATE fencepost.node_instance AS n
  SET heartbeat_at = clock_timestamp(),
    expires_at = clock_timestamp() + $2::bigint * interval '1 millisecond',
    counter = n.counter + 1
  WHERE n.instance_id = $1 AND NOT n.dead AND n.expires_at > clock_timestamp()`;

export const renewInstance = statement("renew-instance")`${RENEWAL} RETURNING n.counter`;

/**
 * Renews the heartbeat in one write together with COMMIT: if nothing was renewed, the transaction ends. $3: the
 * transaction's marker.
 */
export const renewKnownInstance = counted("renew-known-instance", "living instances", "1")`
  ${RENEWAL} AND fencepost.require_open($3)`;

export const announceInstance = statement("announce-instance")`
  UPDATE fencepost.node_instance AS n SET chains = $2::bigint[], draining = $3, stands_back = $4, keys_away = $5::text[]
  WHERE n.instance_id = $1
  RETURNING n.instance_id`;

export const listInstances = statement<InstanceRecord>("list-instances")`
  SELECT n.instance_id, n.node_id, n.url, n.version, n.mode, n.started_at, n.heartbeat_at, n.expires_at, n.counter,
    n.dead, n.chains::float8[] AS chains, n.draining, n.stands_back, n.keys_away, n.public_key, n.key_proof, n.expires_at <= clock_timestamp() AS expired,
    coalesce(held.lanes, 0) AS lanes,
    (SELECT count(*) + count(k.ended_at) FROM fencepost.kill AS k) AS kill_changes, clock_timestamp() AS read_at,
    CASE WHEN n.session_lock IS NULL THEN 'none' WHEN locked.key IS NULL THEN 'gone' ELSE 'held' END AS lock
  FROM fencepost.node_instance AS n
  LEFT JOIN (
    SELECT l.owner_instance, count(*) AS lanes FROM fencepost.lane AS l GROUP BY l.owner_instance
  ) AS held ON held.owner_instance = n.instance_id
  LEFT JOIN (${SESSION_LOCKS}) AS locked ON locked.key = n.session_lock
  ORDER BY n.started_at, n.instance_id`;

/** Reads whether the instance is alive. A dead instance may take no lanes. */
export const readInstance = statement<{ readonly alive: boolean }>("read-instance")`
  SELECT NOT n.dead AND n.expires_at > clock_timestamp() AS alive
  FROM fencepost.node_instance AS n
  WHERE n.instance_id = $1`;

export const readSigners = statement<{ readonly signer: Address }>("read-signers")`
  SELECT unnest(n.signers) AS signer FROM fencepost.node_instance AS n WHERE n.instance_id = $1`;

/**
 * Takes the session lock $1 until the session ends; never waits. The lock's class is the object id of a table of this
 * schema, so that no other user of the database has it by chance. Before the table exists, no lock is taken.
 *
 * Also returns the longest time for which a session can have existed: since the server was started, or since the crash
 * of one server process ended all sessions. Such a crash does not change the start time, but resets the WAL statistics.
 */
export const takeSessionLock = statement<SessionLockRow>("take-session-lock")`
  SELECT pg_try_advisory_lock(to_regclass('fencepost.node_instance')::oid::integer, $1::integer) AS taken,
    pg_backend_pid() AS session,
    (extract(epoch FROM clock_timestamp() - greatest(
      pg_postmaster_start_time(), (SELECT w.stats_reset FROM pg_stat_wal AS w)
    )) * 1000)::float8 AS "serverUpMs"`;

export interface SessionLockRow {
  /** True if the lock was taken; null if there is no schema yet. */
  readonly taken: boolean | null;
  readonly session: number;
  readonly serverUpMs: number;
}

/**
 * Publishes the session lock $2 if other sessions can see that session $3 holds it; otherwise publishes no lock. Either
 * way the heartbeat's counter increases.
 */
export const publishLock = statement<{ readonly published: boolean }>("publish-lock")`
  UPDATE fencepost.node_instance AS n
  SET session_lock = (
      SELECT held.key FROM (${SESSION_LOCKS}) AS held WHERE held.key = $2::integer AND held.session = $3::integer
    ),
    counter = n.counter + 1
  WHERE n.instance_id = $1 AND NOT n.dead AND n.expires_at > clock_timestamp()
  RETURNING n.session_lock IS NOT NULL AS published`;

/**
 * Like `publishLock`, in one write together with COMMIT: if the instance is dead or expired, or the lock is not visible
 * to other sessions, the transaction ends. $4: the transaction's marker.
 */
export const publishKnownLock = counted("publish-known-lock", "living instances with this lock", "1")`
  UPDATE fencepost.node_instance AS n
  SET session_lock = $2::integer, counter = n.counter + 1
  WHERE n.instance_id = $1 AND NOT n.dead AND n.expires_at > clock_timestamp() AND fencepost.require_open($4)
    AND (
      $2::integer IS NULL
      OR EXISTS (SELECT FROM (${SESSION_LOCKS}) AS held WHERE held.key = $2::integer AND held.session = $3::integer)
    )`;

/**
 * Lists instances whose published session lock is not held now. On a standby the list is empty: a direct URL may lead
 * to a standby, which has the primary's rows, but not its locks.
 */
export const listMissingLocks = statement<{ readonly instanceId: string; readonly counter: number }>(
  "list-missing-locks",
)`
  SELECT n.instance_id AS "instanceId", n.counter::float8 AS counter FROM fencepost.node_instance AS n
  WHERE NOT n.dead AND n.session_lock IS NOT NULL AND NOT pg_is_in_recovery()
    AND NOT EXISTS (SELECT FROM (${SESSION_LOCKS}) AS held WHERE held.key = n.session_lock)`;

/**
 * Declares an instance dead for good, by compare-and-set on its heartbeat counter: a heartbeat in between makes this
 * fail. Adds a notice in the same statement, so that there is exactly one notice, however many nodes try. $3: the
 * reason. "expired" must be confirmed by the database's clock, and "lock-gone" by its current list of locks.
 * "stood-still" needs no confirmation: the node that declares the death has observed with its own clock that the
 * counter did not change.
 */
export const declareDead = statement<{ readonly instanceId: string }>("declare-dead")`
  WITH gone AS (
  UPDATE fencepost.node_instance AS n
  SET dead = true
  WHERE n.instance_id = $1 AND NOT n.dead AND n.counter = $2
    AND CASE $3::text
      WHEN 'stood-still' THEN true
      WHEN 'expired' THEN n.expires_at <= clock_timestamp()
      WHEN 'lock-gone' THEN n.session_lock IS NOT NULL
        AND NOT EXISTS (SELECT FROM (${SESSION_LOCKS}) AS held WHERE held.key = n.session_lock)
      ELSE false
    END
  RETURNING n.instance_id, n.node_id, n.draining
  ), noticed AS (${NOTE_VANISHED}
  )
  SELECT g.instance_id FROM gone AS g`;

/**
 * Ends every instance except the one that registers now ($1), because the others belong to a history of the database
 * that is over. Their processes register again.
 */
export const endInstances = statement("end-instances")`
  UPDATE fencepost.node_instance AS n SET dead = true WHERE n.instance_id <> $1 AND NOT n.dead`;

export const retireInstance = statement("retire-instance")`
  UPDATE fencepost.node_instance AS n SET dead = true WHERE n.instance_id = $1`;

/** Deletes instances that have been dead for a day and hold no lanes. */
export const purgeInstances = statement("purge-instances")`
  DELETE FROM fencepost.node_instance AS n
  WHERE n.dead AND n.heartbeat_at < clock_timestamp() - interval '1 day'
    AND (SELECT count(*) FROM fencepost.lane AS l WHERE l.owner_instance = n.instance_id) = 0`;
