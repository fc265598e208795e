import { statement } from "./statement.ts";

/** Markers of processes that are gone. Of one that sleeps they must stay: they are what it knows the history by. */
export const purgeCommitMarkers = statement<unknown>(
  "purge-commit-markers",
  "DELETE FROM fencepost.commit_marker AS m WHERE m.written_at < clock_timestamp() - interval '30 days'",
);
