import { statement } from "./statement.ts";

/**
 * Whether anything waits in the intake table, of any lane. The condition on the signer holds for all; with it the planner
 * begins in the index of what waits, and does not walk the ids past every alias.
 */
export const findAnyIntake = statement<{ readonly waiting: number }>(
  "find-any-intake",
  "SELECT 1 AS waiting FROM fencepost.intake AS i WHERE i.alias_of IS NULL AND i.signer >= '' LIMIT 1",
);
