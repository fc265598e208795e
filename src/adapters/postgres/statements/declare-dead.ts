import { SESSION_LOCKS } from "../session-locks.ts";
import { statement } from "./statement.ts";

/**
 * Ends an instance once and for all, by compare-and-set on its counter: a sign of life in between makes it fail. $3: the
 * database's clock must agree, or its list of locks once more; unless the claimant has watched the counter stand still on
 * a clock of its own.
 */
export const declareDead = statement<{ readonly instance_id: string }>(
  "declare-dead",
  `UPDATE fencepost.node_instance AS n
   SET dead = true
   WHERE n.instance_id = $1 AND NOT n.dead AND n.counter = $2
     AND CASE $3::text
       WHEN 'stood-still' THEN true
       WHEN 'expired' THEN n.expires_at <= clock_timestamp()
       WHEN 'lock-gone' THEN n.session_lock IS NOT NULL
         AND NOT EXISTS (SELECT FROM (${SESSION_LOCKS}) AS held WHERE held.key = n.session_lock)
       ELSE false
     END
   RETURNING n.instance_id`,
);
