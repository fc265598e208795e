import { statement } from "./statement.ts";

/** Waits for every open write of every lane. Ascending, as everywhere. */
export const lockEveryLane = statement<unknown>(
  "lock-every-lane",
  "SELECT 1 FROM fencepost.lane AS l ORDER BY l.chain_id, l.signer FOR NO KEY UPDATE",
);
