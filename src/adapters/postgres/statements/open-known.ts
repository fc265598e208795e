import type { OpenedRow } from "./open-transaction.ts";
import { statement } from "./statement.ts";

/**
 * As open-transaction.ts, for a transaction that leaves in one write: whether the history is the one known cannot be
 * asked in between, so the server ends the transaction where it is another. $6 is the transaction's marker, by which its
 * other statements know that it is open; $7 to $10 system, timeline, epoch and the least WAL position.
 */
export const openKnown = statement<OpenedRow>(
  "open-known",
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
     set_config('fencepost.transaction', $6, true),
     seen.*,
     fencepost.require_rows(
       (
         seen.system_identifier = $7::text AND seen.timeline = $8::text AND seen.epoch = $9::integer
           AND seen.wal_position >= $10::numeric
       )::integer, 1, 'histories as known'
     )
   FROM (
     SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
       substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline,
       (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric AS wal_position,
       (SELECT f.epoch FROM fencepost.feed AS f WHERE f.only_row) AS epoch,
       current_setting('synchronous_standby_names') <> ''
         AND current_setting('synchronous_commit') IN ('on', 'remote_apply') AS synchronous,
       now() AS now
     OFFSET 0
   ) AS seen`,
);
