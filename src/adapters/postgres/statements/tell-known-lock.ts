import { SESSION_LOCKS } from "../session-locks.ts";
import { statement } from "./statement.ts";

/**
 * As tell-lock.ts, in one write with COMMIT behind it: where the instance is over, or the lock is not where others look,
 * the transaction ends. $4: its marker.
 */
export const tellKnownLock = statement<unknown>(
  "tell-known-lock",
  `WITH told AS (
     UPDATE fencepost.node_instance AS n
     SET session_lock = $2::integer, counter = n.counter + 1
     WHERE n.instance_id = $1 AND NOT n.dead AND n.expires_at > clock_timestamp() AND fencepost.require_open($4)
       AND (
         $2::integer IS NULL
         OR EXISTS (SELECT FROM (${SESSION_LOCKS}) AS held WHERE held.key = $2::integer AND held.session = $3::integer)
       )
     RETURNING n.counter
   )
   SELECT fencepost.require_rows((SELECT count(*) FROM told)::integer, 1, 'living instances with this lock')`,
);
