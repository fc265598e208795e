import type { LeaseRow } from "./list-leases.ts";
import { statement } from "./statement.ts";

/** One lane and its owner; after the lane was locked, what is true until COMMIT. */
export const readLease = statement<LeaseRow>(
  "read-lease",
  `SELECT l.chain_id, l.signer, l.token, l.acquired_at, o.instance_id, o.node_id, o.url, o.expires_at
   FROM fencepost.lane AS l
   LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance AND NOT o.dead
   WHERE l.chain_id = $1 AND l.signer = $2`,
);
