import { CLOSED } from "../commit-slots.ts";
import { statement } from "./statement.ts";

/**
 * The transaction's own marker in its slot: there after COMMIT, and only then. Its row is locked from here on. A slot that
 * was closed ends the transaction: it was told lost. $3 the marker; $4 the same where BEGIN may have failed without
 * anybody knowing yet, else null.
 */
export const markCommit = statement<unknown>(
  "mark-commit",
  `INSERT INTO fencepost.commit_marker AS m (store_id, slot, marker, written_at)
   SELECT $1::uuid, $2::integer, $3::uuid, now() WHERE fencepost.require_open($4)
   ON CONFLICT (store_id, slot) DO UPDATE
   SET
     marker = CASE
       WHEN m.marker <> '${CLOSED}' THEN excluded.marker
       ELSE fencepost.require_rows(0, 1, 'open slots')::text::uuid
     END,
     written_at = excluded.written_at`,
);
