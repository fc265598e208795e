import { statement } from "./statement.ts";

/** Intake rows that became transactions in this commit. */
export const deleteIntake = statement<unknown>(
  "delete-intake",
  `WITH consumed AS (
     DELETE FROM fencepost.intake AS i WHERE i.intake_id = ANY ($1::bigint[]) RETURNING 1
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM consumed), $2, 'consumed intake rows')`,
);
