import { statement } from "./statement.ts";

/** Dead for a day and holding nothing: nobody asks about these any more. */
export const purgeInstances = statement<unknown>(
  "purge-instances",
  `DELETE FROM fencepost.node_instance AS n
   WHERE n.dead AND n.heartbeat_at < clock_timestamp() - interval '1 day'
     AND (SELECT count(*) FROM fencepost.lane AS l WHERE l.owner_instance = n.instance_id) = 0`,
);
