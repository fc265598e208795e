import { statement } from "./statement.ts";

/** How far the history has come that the newest registration saw. $1: the marker of the transaction. */
export const rememberPosition = statement<unknown>(
  "remember-position",
  `UPDATE fencepost.database_history AS h
   SET wal_position = greatest(h.wal_position, (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric),
     seen_at = clock_timestamp()
   WHERE h.ordinal = (SELECT max(newest.ordinal) FROM fencepost.database_history AS newest)
     AND fencepost.require_open($1)`,
);
