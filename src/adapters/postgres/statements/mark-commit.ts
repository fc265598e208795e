import { statement } from "./statement.ts";

/**
 * The transaction's own marker in its slot: there after COMMIT, and only then. Its row is locked from here on. $3 the
 * marker; $4 the same where BEGIN may have failed without anybody knowing yet, else null.
 */
export const markCommit = statement<unknown>(
  "mark-commit",
  `INSERT INTO fencepost.commit_marker (store_id, slot, marker, written_at)
   SELECT $1::uuid, $2::integer, $3::uuid, now() WHERE fencepost.require_open($4)
   ON CONFLICT (store_id, slot) DO UPDATE
   SET marker = excluded.marker, written_at = excluded.written_at`,
);
