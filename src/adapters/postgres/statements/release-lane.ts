import { statement } from "./statement.ts";

/** Frees a lane where the term is exactly this one. */
export const releaseLane = statement<{ readonly chain_id: number }>(
  "release-lane",
  `UPDATE fencepost.lane AS l
   SET owner_instance = NULL
   WHERE l.chain_id = $1 AND l.signer = $2 AND l.owner_instance = $3 AND l.token = $4
   RETURNING l.chain_id`,
);
