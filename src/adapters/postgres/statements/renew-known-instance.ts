import { statement } from "./statement.ts";

/** As renew-instance.ts, in one write with COMMIT behind it: where nothing was renewed, the transaction ends. $3: its marker. */
export const renewKnownInstance = statement<unknown>(
  "renew-known-instance",
  `WITH renewed AS (
     UPDATE fencepost.node_instance AS n
     SET heartbeat_at = clock_timestamp(),
       expires_at = clock_timestamp() + $2::bigint * interval '1 millisecond',
       counter = n.counter + 1
     WHERE n.instance_id = $1 AND NOT n.dead AND n.expires_at > clock_timestamp() AND fencepost.require_open($3)
     RETURNING n.counter
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM renewed)::integer, 1, 'living instances')`,
);
