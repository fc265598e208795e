import type { DatabaseIdentity, ObservedHistory } from "../session/known-history.ts";
import { HISTORY, LIMITS, PLACE, PLANNER } from "../session/opening.ts";
import { statement } from "./statement.ts";

/**
 * First statement of every reading transaction: sets a time limit in the server, and the planner settings of
 * `openTransaction`. Bitmap scans are off, so that a page is read in index order instead of sorting all rows.
 */
export const openRead = statement("open-read")`
  SELECT
    set_config('statement_timeout', $1, true),
    set_config('idle_in_transaction_session_timeout', $1, true),
    ${PLANNER}`;

/**
 * First statement of every writing transaction, before any lock: sets limits that the server enforces, and reads the
 * identity of the database (system, timeline, epoch, WAL position), which shows a restore or failover.
 *
 * $4 is the name `transaction_timeout` if the server has this setting (17), else a setting of our own without effect,
 * so that one statement serves all versions.
 *
 * The planner settings apply to this transaction only. Our statements look rows up by key for a batch of at most a few
 * hundred: index scans, and hash joins with the batch. A table that was tiny when the plan was cached, or was never
 * analysed, must not turn that into nested sequential scans. Generic plans are forced. Otherwise a statement with a
 * short list would be planned again every time, because it looks cheaper than the generic plan, which assumes ten
 * elements. JIT is off: before 18, a plan that uses a disabled method for lack of another counts as infinitely
 * expensive, so it was compiled, which took 190 ms for 2 ms of running.
 *
 * DateStyle is set, because a host application may have given its role another one, which the driver cannot read.
 *
 * The epoch shows a restore even to a node that checks late. The WAL position does not, because after a restore it soon
 * grows past the last position seen before.
 *
 * The timeline is read from the current WAL file's name, which shows a promotion at once; `pg_control_checkpoint()`
 * lags.
 */
export const openTransaction = statement<Opened>("open-transaction")`SELECT ${LIMITS}, ${HISTORY}`;

export type Opened = ObservedHistory & { readonly now: Date };

/**
 * Like `openTransaction`, for a transaction in one write. The client cannot compare the database's history before the
 * next statement, so the server does, and ends the transaction if the history is another one. $6: the transaction's
 * marker, by which its other statements recognise that it is open; $7 to $10: system, timeline, epoch and the lowest
 * allowed WAL position.
 */
export const openKnown = statement<Opened>("open-known")`
  SELECT ${LIMITS},
    set_config('fencepost.transaction', $6, true),
    seen.*,
    fencepost.require_rows(
      (
        seen.system_identifier = $7::text AND seen.timeline = $8::text AND seen.epoch = $9::integer
          AND seen.wal_position >= $10::numeric
      )::integer, 1, 'histories as known'
    )
  FROM (
    SELECT ${HISTORY}
    OFFSET 0
  ) AS seen`;

/**
 * Sets the time limits of the statements that follow in this transaction. $1: for each statement; $2: for each wait for
 * a lock, short if the feed's counter is locked next.
 */
export const limitWaits = statement("limit-waits")`
  SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)`;

/**
 * Ends the transaction unless the database's history is the one that this process knows. Used by a registration in one
 * round trip; in any other case the registration needs two round trips and judge-history.ts. $1: system, $2: timeline,
 * $3: epoch; $4: the highest known number of the feed; $5: this store; $6: its commit slots; $7: for each slot the
 * possible markers, joined by commas, one of which must be stored; $8: the newest known migration.
 */
export const proveContinuity = statement("prove-continuity")`
  SELECT fencepost.require_rows(
    (
      SELECT count(*)
      FROM (SELECT * FROM fencepost.database_history AS newest ORDER BY newest.ordinal DESC LIMIT 1) AS h
      WHERE h.system_identifier = $1 AND h.timeline = $2 AND h.epoch = $3::integer
        AND coalesce(h.place = ${PLACE}, true)
        AND NOT h.may_have_lost AND h.wal_position <= (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric
        AND (SELECT f.last_seq FROM fencepost.feed AS f WHERE f.only_row) >= $4::bigint
        AND (
          SELECT count(*)
          FROM unnest($6::integer[], $7::text[]) AS expected (slot, markers)
          JOIN fencepost.commit_marker AS m ON m.store_id = $5::uuid AND m.slot = expected.slot
          WHERE m.marker::text = ANY (string_to_array(expected.markers, ','))
        ) = cardinality($6::integer[])
        AND (SELECT count(*) FROM fencepost.migration AS later WHERE later.name > $8) = 0
    )::integer, 1, 'histories that go on'
  )`;

/**
 * Locks chains before their blocks are stored, because two nodes that own different lanes may store blocks of one chain
 * at the same time. Lock order: after the lanes, before the feed, chains ascending.
 */
export const lockChains = statement("lock-chains")`
  SELECT pg_advisory_xact_lock(hashtextextended('fencepost confirmation ' || c.chain_id, 0))
  FROM unnest($1::bigint[]) AS c(chain_id)`;

export const ping = statement("ping")`SELECT 1`;

/** Sends a NOTIFY to every listening node, in a separate transaction: see wake-ups.ts. */
export const notify = statement("notify")`SELECT pg_notify('fencepost', $1)`;

/**
 * Reads the process id of the server process behind this connection. At connect, a pooler reports its own id instead.
 */
export const readBackend = statement<{ readonly pid: number }>("read-backend")`
  SELECT pg_catalog.pg_backend_pid() AS pid`;

/** Reads the properties that a server must have before it is used. Works on a standby too, to report that it is one. */
export const inspectServer = statement<ServerRow>("inspect-server")`
  SELECT
    gen_random_uuid() AS store_id,
    current_setting('server_version_num')::integer AS version,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS standby,
    (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
    CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline,
    CASE WHEN pg_is_in_recovery() THEN 0 ELSE (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric END AS wal_position`;

export interface ServerRow extends DatabaseIdentity {
  /** Random id of this connection to the database. */
  readonly storeId: string;
  readonly version: number;
  readonly synchronousCommit: string;
  readonly encoding: string;
  readonly standby: boolean;
}
