import { lists, names } from "../rows/columns.ts";
import type { Applied } from "../rows/schema-skew.ts";
import type { DatabaseIdentity } from "../session/known-history.ts";
import { PLACE } from "../session/opening.ts";
import { statement, taking } from "./statement.ts";

/**
 * Reads the newest recorded history of the database: system identifier, timeline, WAL position and epoch. A restore or
 * a failover begins a new history.
 */
export const readDatabaseHistory = statement<DatabaseHistoryRow>("read-database-history")`
  SELECT h.ordinal, h.system_identifier, h.timeline, h.wal_position, h.epoch, h.may_have_lost,
    (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric AS position_now,
    coalesce(h.place <> ${PLACE}, false) AS loaded_anew
  FROM fencepost.database_history AS h
  ORDER BY h.ordinal DESC
  LIMIT 1`;

export interface DatabaseHistoryRow extends DatabaseIdentity {
  readonly ordinal: number;
  readonly epoch: number;
  readonly mayHaveLost: boolean;
  /**
   * Current WAL position. It is read under the lock under which the recorded position was written. So it can be lower
   * than that only if the database was restored or replaced.
   */
  readonly positionNow: bigint;
  /**
   * True if the database or its lane table is not the recorded one, because a dump was loaded, possibly into the same
   * server.
   */
  readonly loadedAnew: boolean;
}

/**
 * Records the database's history at a registration: inserts a row if a new history began, else updates the WAL position
 * of the newest row.
 */
export const writeDatabaseHistory = statement("write-database-history")`
  INSERT INTO fencepost.database_history AS h (
    ordinal, system_identifier, timeline, wal_position, epoch, may_have_lost, seen_at, place
  )
  VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp(), ${PLACE})
  ON CONFLICT (ordinal) DO UPDATE
  SET wal_position = greatest(h.wal_position, excluded.wal_position), seen_at = excluded.seen_at,
    place = excluded.place`;

/** Records the current WAL position in the newest row of the database's history. $1: the marker of the transaction. */
export const rememberPosition = statement("remember-position")`
  UPDATE fencepost.database_history AS h
  SET wal_position = greatest(h.wal_position, (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric),
    seen_at = clock_timestamp()
  WHERE h.ordinal = (SELECT max(newest.ordinal) FROM fencepost.database_history AS newest)
    AND fencepost.require_open($1)`;

/**
 * Reads the migrations newer than the newest one that this program has ($1). `works_with` of each: the oldest migration
 * that a program must have to work with it; null if only programs that have the migration itself do.
 */
export const readNewerMigrations = statement<Applied>("read-newer-migrations")`
  SELECT m.name, m.works_with FROM fencepost.migration AS m WHERE m.name > $1 ORDER BY m.name`;

const GENESIS = "chain_id bigint, genesis_hash text";

/** Records a chain's genesis hash if it is not recorded yet. */
export const noteGenesis = taking(GENESIS)("note-genesis")`
  INSERT INTO fencepost.chain (${names(GENESIS)}) ${lists(GENESIS)}
  ON CONFLICT (chain_id) DO NOTHING`;
