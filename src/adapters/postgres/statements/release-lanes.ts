import { statement } from "./statement.ts";

/** Frees every lane that an instance holds. The token stays: the next term is above it. */
export const releaseLanes = statement<{ readonly chain_id: number }>(
  "release-lanes",
  "UPDATE fencepost.lane AS l SET owner_instance = NULL WHERE l.owner_instance = $1 RETURNING l.chain_id",
);
