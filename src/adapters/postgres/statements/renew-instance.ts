import { statement } from "./statement.ts";

/**
 * The heartbeat of every lane that an instance holds. By `clock_timestamp()`: with `now()`, a renewal that waited would
 * be born expired.
 */
export const renewInstance = statement<unknown>(
  "renew-instance",
  `UPDATE fencepost.node_instance AS n
   SET heartbeat_at = clock_timestamp(),
     expires_at = clock_timestamp() + $2::bigint * interval '1 millisecond',
     counter = n.counter + 1
   WHERE n.instance_id = $1 AND NOT n.dead AND n.expires_at > clock_timestamp()
   RETURNING n.counter`,
);
