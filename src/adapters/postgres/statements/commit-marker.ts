import { CLOSED } from "../session/commit-slots.ts";
import { statement } from "./statement.ts";

/**
 * Writes the transaction's marker ($3) to its slot. The marker becomes visible only if the transaction commits. The
 * slot's row stays locked until then. If the slot is closed, the transaction was already reported as lost, so it is
 * ended. $4: the marker if the response to BEGIN is still outstanding, else null.
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

/** Reads the markers of this process's last commits. */
export const readOwnMarkers = statement<{ readonly slot: number; readonly marker: string }>("read-own-markers")`
  SELECT m.slot, m.marker FROM fencepost.commit_marker AS m WHERE m.store_id = $1`;

/**
 * Waits for the transaction that uses the slot, even if it is the slot's first one and its row is not visible yet. If
 * the transaction left its marker ($3), the marker and its time stay unchanged. Otherwise the slot is closed, so that
 * the transaction fails if it reaches the server later. A closed slot gets the current time, so that the purge of old
 * markers does not remove it before the late transaction arrives.
 */
export const closeSlot = statement<{ readonly marker: string; readonly writtenAt: Date }>("close-slot")`
  INSERT INTO fencepost.commit_marker AS m (store_id, slot, marker, written_at)
  VALUES ($1::uuid, $2::integer, '${CLOSED}', now())
  ON CONFLICT (store_id, slot) DO UPDATE
  SET marker = CASE m.marker WHEN $3::uuid THEN m.marker ELSE excluded.marker END,
    written_at = CASE m.marker WHEN $3::uuid THEN m.written_at ELSE excluded.written_at END
  RETURNING m.marker, m.written_at`;

/**
 * Deletes markers that are older than 30 days, which no process needs any more. Newer markers must stay: by them, a
 * process that was suspended for a while checks that the database has lost none of its commits.
 */
export const purgeCommitMarkers = statement("purge-commit-markers")`
  DELETE FROM fencepost.commit_marker AS m WHERE m.written_at < clock_timestamp() - interval '30 days'`;
