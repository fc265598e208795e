import { CLOSED } from "../session/commit-slots.ts";
import { statement } from "./statement.ts";

/**
 * The transaction's own marker in its slot: there after COMMIT, and only then. Its row is locked from here on. A closed
 * slot ends the transaction: it was reported as lost. $3 the marker; $4 the same if the answer to BEGIN is still
 * outstanding, else null.
 */
export const markCommit = statement("mark-commit")`
  INSERT INTO fencepost.commit_marker AS m (store_id, slot, marker, written_at)
  SELECT $1::uuid, $2::integer, $3::uuid, now() WHERE fencepost.require_open($4)
  ON CONFLICT (store_id, slot) DO UPDATE
  SET
    marker = CASE
      WHEN m.marker <> '${CLOSED}' THEN excluded.marker
      ELSE fencepost.require_rows(0, 1, 'open slots')::text::uuid
    END,
    written_at = excluded.written_at`;

/** Markers of a process's last commits: its own, not of an earlier state of the database. */
export const readOwnMarkers = statement<{ readonly slot: number; readonly marker: string }>("read-own-markers")`
  SELECT m.slot, m.marker FROM fencepost.commit_marker AS m WHERE m.store_id = $1`;

/**
 * Waits for the transaction that uses the slot, also if that is its first and no row shows yet. If it left its marker
 * ($3), that stays, with its time; else the slot is closed, and a transaction that is still on its way to the server
 * ends there. The time of a closed slot is now: the purge of old markers must not remove it before the late transaction
 * arrives.
 */
export const closeSlot = statement<{ readonly marker: string; readonly writtenAt: Date }>("close-slot")`
  INSERT INTO fencepost.commit_marker AS m (store_id, slot, marker, written_at)
  VALUES ($1::uuid, $2::integer, '${CLOSED}', now())
  ON CONFLICT (store_id, slot) DO UPDATE
  SET marker = CASE m.marker WHEN $3::uuid THEN m.marker ELSE excluded.marker END,
    written_at = CASE m.marker WHEN $3::uuid THEN m.written_at ELSE excluded.written_at END
  RETURNING m.marker, m.written_at`;

/** Markers of processes that are gone. Of one that sleeps they must stay: they are what it knows the history by. */
export const purgeCommitMarkers = statement("purge-commit-markers")`
  DELETE FROM fencepost.commit_marker AS m WHERE m.written_at < clock_timestamp() - interval '30 days'`;
