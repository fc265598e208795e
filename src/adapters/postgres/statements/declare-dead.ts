import { statement } from "./statement.ts";

/**
 * Ends an instance once and for all, by compare-and-set on its counter: a renewal in between makes it fail. $3: the
 * database's clock must agree, unless the claimant has watched the counter stand still on a clock of its own.
 */
export const declareDead = statement<{ readonly instance_id: string }>(
  "declare-dead",
  `UPDATE fencepost.node_instance AS n
   SET dead = true
   WHERE n.instance_id = $1 AND NOT n.dead AND n.counter = $2
     AND ($3::text = 'stood-still' OR n.expires_at <= clock_timestamp())
   RETURNING n.instance_id`,
);
