import { SESSION_LOCKS } from "../session-locks.ts";
import { statement } from "./statement.ts";

/** Tells of the lock $2 where the session $3 holds it as others see it, else of none. Either way a sign of life. */
export const tellLock = statement<{ readonly told: boolean }>(
  "tell-lock",
  `UPDATE fencepost.node_instance AS n
   SET session_lock = (
       SELECT held.key FROM (${SESSION_LOCKS}) AS held WHERE held.key = $2::integer AND held.session = $3::integer
     ),
     counter = n.counter + 1
   WHERE n.instance_id = $1 AND NOT n.dead AND n.expires_at > clock_timestamp()
   RETURNING n.session_lock IS NOT NULL AS told`,
);
