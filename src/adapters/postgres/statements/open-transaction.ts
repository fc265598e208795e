import { statement } from "./statement.ts";

/**
 * First in every transaction, before any lock: limits that live in the server, and the history of the database.
 *
 * $4 is `transaction_timeout` where the server has it (17), else a name of ours that means nothing, so that one
 * statement serves all versions.
 *
 * The planner's switches hold for this transaction alone. Our statements look rows up by key for a batch of at most a
 * few hundred: index scans, and hash joins with the batch. A table that was tiny when the plan was cached, or was never
 * analysed, must not turn that into nested sequential scans. Generic plans, because a short list always looks cheaper
 * than the ten elements that a generic plan assumes, and would be planned again every time. No JIT: before 18 a switched-off plan that has no
 * alternative counts as infinitely expensive, and compiling it took 190 ms where running it takes 2.
 *
 * DateStyle, because a host application may have given its role another, which the driver cannot read.
 *
 * The epoch tells a node that looks late what the position no longer shows: after a restore it soon grows past what was
 * seen before.
 *
 * The timeline comes from the current WAL file's name, which shows a promotion at once; `pg_control_checkpoint()` lags.
 */
export const openTransaction = statement<OpenedRow>(
  "open-transaction",
  `SELECT
     set_config('statement_timeout', $1, true),
     set_config('lock_timeout', $2, true),
     set_config('idle_in_transaction_session_timeout', $3, true),
     set_config($4, $5, true),
     set_config('plan_cache_mode', 'force_generic_plan', true),
     set_config('enable_seqscan', 'off', true),
     set_config('enable_bitmapscan', 'off', true),
     set_config('enable_nestloop', 'off', true),
     set_config('jit', 'off', true),
     set_config('DateStyle', 'ISO', true),
     (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
     substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline,
     (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric AS wal_position,
     (SELECT f.epoch FROM fencepost.feed AS f WHERE f.only_row) AS epoch,
     current_setting('synchronous_standby_names') <> ''
       AND current_setting('synchronous_commit') IN ('on', 'remote_apply') AS synchronous,
     now() AS now`,
);

export interface OpenedRow {
  readonly system_identifier: string;
  readonly timeline: string;
  readonly wal_position: bigint;
  /** Of the feed: whoever noticed another history has begun a new one. */
  readonly epoch: number;
  /** What is acknowledged here is on a standby's disk too. */
  readonly synchronous: boolean;
  readonly now: Date;
}
