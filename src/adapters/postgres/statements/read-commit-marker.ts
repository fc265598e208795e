import { statement } from "./statement.ts";

/** Waits for the transaction that uses the slot, then shows the last marker that was committed there. */
export const readCommitMarker = statement<{ readonly marker: string }>(
  "read-commit-marker",
  "SELECT m.marker FROM fencepost.commit_marker AS m WHERE m.store_id = $1 AND m.slot = $2 FOR UPDATE",
);
