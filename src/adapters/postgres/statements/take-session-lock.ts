import { statement } from "./statement.ts";

/**
 * The lock $1 of the class of this schema, until the session ends; never waited for. The class is the identity of a table
 * of the schema, so that no other user of the database has it by chance; before there is one, none is taken.
 *
 * How long sessions have been possible: since the server was started, or since the crash of one process ended all sessions
 * at once, which leaves the start time as it was and shows as a reset of the statistics of the log.
 */
export const takeSessionLock = statement<SessionLockRow>(
  "take-session-lock",
  `SELECT pg_try_advisory_lock(to_regclass('fencepost.node_instance')::oid::integer, $1::integer) AS taken,
     pg_backend_pid() AS session,
     (extract(epoch FROM clock_timestamp() - greatest(
       pg_postmaster_start_time(), (SELECT w.stats_reset FROM pg_stat_wal AS w)
     )) * 1000)::float8 AS server_up_ms`,
);

export interface SessionLockRow {
  /** Null: there is no schema yet. */
  readonly taken: boolean | null;
  readonly session: number;
  readonly server_up_ms: number;
}
