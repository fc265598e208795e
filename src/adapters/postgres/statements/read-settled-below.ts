import { statement } from "./statement.ts";

/** One above the highest nonce of a lane that is settled and past its watch. The index is walked from its end. */
export const readSettledBelow = statement<SettledBelowRow>(
  "read-settled-below",
  `SELECT t.nonce + 1 AS settled_below
   FROM fencepost.transaction AS t
   WHERE t.chain_id = $1 AND t.signer = $2 AND t.nonce IS NOT NULL AND NOT t.live
   ORDER BY t.nonce DESC
   LIMIT 1`,
);

export interface SettledBelowRow {
  readonly settled_below: number;
}
