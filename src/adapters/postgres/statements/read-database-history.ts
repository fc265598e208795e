import { statement } from "./statement.ts";

/** The history that the newest registration saw. */
export const readDatabaseHistory = statement<DatabaseHistoryRow>(
  "read-database-history",
  `SELECT h.ordinal, h.system_identifier, h.timeline, h.wal_position, h.epoch, h.may_have_lost,
     (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric AS position_now
   FROM fencepost.database_history AS h
   ORDER BY h.ordinal DESC
   LIMIT 1`,
);

export interface DatabaseHistoryRow {
  readonly ordinal: number;
  readonly system_identifier: string;
  readonly timeline: string;
  readonly wal_position: bigint;
  readonly epoch: number;
  readonly may_have_lost: boolean;
  /** Not below the recorded one, unless that was of another history: read behind the lock under which it was written. */
  readonly position_now: bigint;
}
