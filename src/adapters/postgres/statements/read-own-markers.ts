import { statement } from "./statement.ts";

/** What a process's last commits left behind: one of its own, not of an earlier state of the database. */
export const readOwnMarkers = statement<{ readonly slot: number; readonly marker: string }>(
  "read-own-markers",
  "SELECT m.slot, m.marker FROM fencepost.commit_marker AS m WHERE m.store_id = $1",
);
