import { statement } from "./statement.ts";

/**
 * Ends every term: a write of before, if it comes, finds another owner. Where commits may be lost ($1), the lanes wait
 * for an operator besides.
 */
export const endTerms = statement<unknown>(
  "end-terms",
  `UPDATE fencepost.lane AS l
   SET owner_instance = NULL,
     suspended = l.suspended OR $1::boolean,
     suspended_by = CASE WHEN $1::boolean THEN 'HISTORY' ELSE l.suspended_by END`,
);
