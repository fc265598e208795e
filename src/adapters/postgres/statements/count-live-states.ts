import { statement } from "./statement.ts";

/** Live transactions by state, as kept; what waits in the intake table is CREATED, and counted. */
export const countLiveStates = statement<{ readonly state: string; readonly count: number }>(
  "count-live-states",
  `SELECT c.state, sum(c.count)::bigint AS count FROM fencepost.live_count AS c GROUP BY c.state HAVING sum(c.count) > 0
   UNION ALL
   SELECT 'CREATED', count(*) FROM fencepost.intake AS i WHERE i.alias_of IS NULL HAVING count(*) > 0`,
);
