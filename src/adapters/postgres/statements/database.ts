import { lists, names } from "../rows/columns.ts";
import type { Applied } from "../rows/schema-skew.ts";
import type { DatabaseIdentity } from "../session/known-history.ts";
import { PLACE } from "../session/opening.ts";
import { statement, taking } from "./statement.ts";

/** The history that the newest registration saw. */
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
  /** Not below the recorded one, unless that was of another history: read behind the lock under which it was written. */
  readonly positionNow: bigint;
  /** Database or table are not those that were registered in: a dump was loaded, be it into the server that it came from. */
  readonly loadedAnew: boolean;
}

/** The history that a registration sees: a new row if it is another one, else its newest position. */
export const writeDatabaseHistory = statement("write-database-history")`
  INSERT INTO fencepost.database_history AS h (
    ordinal, system_identifier, timeline, wal_position, epoch, may_have_lost, seen_at, place
  )
  VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp(), ${PLACE})
  ON CONFLICT (ordinal) DO UPDATE
  SET wal_position = greatest(h.wal_position, excluded.wal_position), seen_at = excluded.seen_at,
    place = excluded.place`;

/** How far the history has come that the newest registration saw. $1: the marker of the transaction. */
export const rememberPosition = statement("remember-position")`
  UPDATE fencepost.database_history AS h
  SET wal_position = greatest(h.wal_position, (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::numeric),
    seen_at = clock_timestamp()
  WHERE h.ordinal = (SELECT max(newest.ordinal) FROM fencepost.database_history AS newest)
    AND fencepost.require_open($1)`;

/** Migrations beyond the newest one that the program knows ($1), and the older programs that they work with. */
export const readNewerMigrations = statement<Applied>("read-newer-migrations")`
  SELECT m.name, m.works_with FROM fencepost.migration AS m WHERE m.name > $1 ORDER BY m.name`;

const GENESIS = "chain_id bigint, genesis_hash text";

/** The first node to see a chain notes its first block; later ones change nothing. */
export const noteGenesis = taking(GENESIS)("note-genesis")`
  INSERT INTO fencepost.chain (${names(GENESIS)}) ${lists(GENESIS)}
  ON CONFLICT (chain_id) DO NOTHING`;
