import { statement } from "./statement.ts";

/** Every lane that an instance holds, ascending. */
export const lockLanesOfInstance = statement<unknown>(
  "lock-lanes-of-instance",
  `SELECT 1 FROM fencepost.lane AS l
   WHERE l.owner_instance = $1
   ORDER BY l.chain_id, l.signer
   FOR NO KEY UPDATE`,
);
