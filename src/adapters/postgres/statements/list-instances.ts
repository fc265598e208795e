import { SESSION_LOCKS } from "../session-locks.ts";
import { statement } from "./statement.ts";

export const listInstances = statement<InstanceRow>(
  "list-instances",
  `SELECT n.instance_id, n.node_id, n.url, n.version, n.mode, n.started_at, n.heartbeat_at, n.expires_at, n.counter,
     n.dead, n.chains, n.draining, n.stands_back, n.expires_at <= clock_timestamp() AS expired,
     coalesce(held.lanes, 0) AS lanes,
     CASE WHEN n.session_lock IS NULL THEN 'none' WHEN locked.key IS NULL THEN 'gone' ELSE 'held' END AS lock
   FROM fencepost.node_instance AS n
   LEFT JOIN (
     SELECT l.owner_instance, count(*) AS lanes FROM fencepost.lane AS l GROUP BY l.owner_instance
   ) AS held ON held.owner_instance = n.instance_id
   LEFT JOIN (${SESSION_LOCKS}) AS locked ON locked.key = n.session_lock
   ORDER BY n.started_at, n.instance_id`,
);

export interface InstanceRow {
  readonly instance_id: string;
  readonly node_id: string;
  readonly url: string;
  readonly version: string;
  readonly mode: "basic" | "worker-queue";
  readonly started_at: Date;
  readonly heartbeat_at: Date;
  readonly expires_at: Date;
  readonly counter: number;
  readonly dead: boolean;
  readonly expired: boolean;
  readonly lanes: number;
  readonly chains: readonly (string | number)[];
  readonly draining: boolean;
  readonly stands_back: boolean;
  readonly lock: "none" | "held" | "gone";
}
