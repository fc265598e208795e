import { statement } from "./statement.ts";

/** Whether an instance may still take anything. */
export const readInstance = statement<{ readonly alive: boolean }>(
  "read-instance",
  `SELECT NOT n.dead AND n.expires_at > clock_timestamp() AS alive
   FROM fencepost.node_instance AS n
   WHERE n.instance_id = $1`,
);
