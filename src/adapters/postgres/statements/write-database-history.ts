import { statement } from "./statement.ts";

/** The history a registration sees: a new row where it is another one, else the position it has come to. */
export const writeDatabaseHistory = statement<unknown>(
  "write-database-history",
  `INSERT INTO fencepost.database_history AS h (
     ordinal, system_identifier, timeline, wal_position, epoch, may_have_lost, seen_at
   )
   VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp())
   ON CONFLICT (ordinal) DO UPDATE
   SET wal_position = greatest(h.wal_position, excluded.wal_position), seen_at = excluded.seen_at`,
);
