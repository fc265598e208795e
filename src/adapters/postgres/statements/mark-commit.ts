import { statement } from "./statement.ts";

/** The transaction's own marker in its slot: there after COMMIT, and only then. Its row is locked from here on. */
export const markCommit = statement<unknown>(
  "mark-commit",
  `INSERT INTO fencepost.commit_marker (store_id, slot, marker, written_at)
   VALUES ($1::uuid, $2::integer, $3::uuid, now())
   ON CONFLICT (store_id, slot) DO UPDATE
   SET marker = excluded.marker, written_at = excluded.written_at`,
);
