/** SQL parts shared by the opening statements: `openTransaction`, and `openKnown` for a transaction in one write. */

/**
 * Begins a transaction with an explicit isolation level. A role's default may be another one, under which a look-up
 * after a lock would see old rows.
 */
export const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/**
 * Search path, set right after BEGIN, before any statement that names a function. A default of the role or the database
 * could put another schema before PostgreSQL's own, and a `clock_timestamp` in it would decide when leases end
 * (CVE-2018-1058).
 */
export const PINNED_PATH = "search_path TO pg_catalog, pg_temp";

/** SQL: planner settings and date format. */
export const PLANNER = `
  set_config('plan_cache_mode', 'force_generic_plan', true),
  set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_nestloop', 'off', true),
  set_config('jit', 'off', true),
  set_config('DateStyle', 'ISO', true)`;

/**
 * SQL: settings of this transaction only; $1 to $5. `fencepost.counts` makes the triggers on transactions leave the
 * counts of lanes to this program (commit/plan.ts). COMMIT waits for the disk, even if a session's defaults were
 * changed since the store was opened: otherwise a crash could lose nonces that the network has seen, without any trace.
 */
export const LIMITS = `
  set_config('statement_timeout', $1, true),
  set_config('lock_timeout', $2, true),
  set_config('idle_in_transaction_session_timeout', $3, true),
  set_config($4, $5, true),
  set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true),
  ${PLANNER},
  set_config('fencepost.counts', 'kept', true)`;

/**
 * SQL: identity and history of the database: system identifier, timeline, WAL position, and the feed's epoch. Also
 * whether commits wait for a standby, and the time.
 */
export const HISTORY = `
  (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline,
  (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric AS wal_position,
  (SELECT f.epoch FROM fencepost.feed AS f WHERE f.only_row) AS epoch,
  current_setting('synchronous_standby_names') <> ''
    AND current_setting('synchronous_commit') IN ('on', 'remote_apply') AS synchronous,
  now() AS now`;

/** SQL: object ids of the database and of the lane table, which the server assigned when they were created. */
export const PLACE = `
  (SELECT d.oid::text FROM pg_database AS d WHERE d.datname = current_database())
    || '.' || 'fencepost.lane'::regclass::oid::text`;
