import { statement } from "./statement.ts";

/** The history that the newest registration saw. */
export const readDatabaseHistory = statement<DatabaseHistoryRow>(
  "read-database-history",
  `SELECT h.ordinal, h.system_identifier, h.timeline, h.wal_position
   FROM fencepost.database_history AS h
   ORDER BY h.ordinal DESC
   LIMIT 1`,
);

export interface DatabaseHistoryRow {
  readonly ordinal: number;
  readonly system_identifier: string;
  readonly timeline: string;
  readonly wal_position: bigint;
}
