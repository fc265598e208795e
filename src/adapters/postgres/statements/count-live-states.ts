import { statement } from "./statement.ts";

/** Live transactions by state; what waits in the intake table is CREATED. */
export const countLiveStates = statement<{ readonly state: string; readonly count: number }>(
  "count-live-states",
  `SELECT t.state, count(*) AS count FROM fencepost.transaction AS t WHERE t.live GROUP BY t.state
   UNION ALL
   SELECT 'CREATED', count(*) FROM fencepost.intake AS i WHERE i.alias_of IS NULL HAVING count(*) > 0`,
);
