import { SESSION_LOCKS } from "../session-locks.ts";
import { statement } from "./statement.ts";

/** Instances that have told of a session lock which nobody holds now. */
export const listMissingLocks = statement<MissingLockRow>(
  "list-missing-locks",
  `SELECT n.instance_id, n.counter::float8 AS counter FROM fencepost.node_instance AS n
   WHERE NOT n.dead AND n.session_lock IS NOT NULL
     AND NOT EXISTS (SELECT FROM (${SESSION_LOCKS}) AS held WHERE held.key = n.session_lock)`,
);

export interface MissingLockRow {
  readonly instance_id: string;
  readonly counter: number;
}
