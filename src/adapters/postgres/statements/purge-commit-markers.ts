import { statement } from "./statement.ts";

/** Markers of processes that are gone. A commit is looked up within seconds. */
export const purgeCommitMarkers = statement<unknown>(
  "purge-commit-markers",
  "DELETE FROM fencepost.commit_marker AS m WHERE m.written_at < clock_timestamp() - interval '1 day'",
);
