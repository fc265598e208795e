import { statement } from "./statement.ts";

/** A fresh marker in this transaction's slot: there after COMMIT, and only then. Its row is locked from here on. */
export const markCommit = statement<{ readonly marker: string }>(
  "mark-commit",
  `INSERT INTO fencepost.commit_marker (store_id, slot, marker, written_at)
   VALUES ($1, $2, gen_random_uuid(), now())
   ON CONFLICT (store_id, slot) DO UPDATE
   SET marker = excluded.marker, written_at = excluded.written_at
   RETURNING marker`,
);
