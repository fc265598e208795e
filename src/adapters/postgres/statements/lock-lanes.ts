import type { SuspendedBy } from "../../../ports/lane-store.ts";
import { lists } from "../lists.ts";
import { statement } from "./statement.ts";

const ROWS = lists("chain_id bigint, signer text, instance_id uuid, token bigint");

/**
 * The fence: locks the lanes that the given terms still hold, ascending, until COMMIT. A takeover waits for it. A term
 * that waited for a takeover finds its row changed: the join with the term is evaluated again on the row as it is now,
 * and the lane is not returned. The heartbeat is read, never locked.
 *
 * $1 to $4, a place for each term: chain, signer, instance, token. Chains and signers are named once more as lists, so
 * that lanes are found by key whatever the planner believes about the size of the table.
 */
export const lockLanes = statement<LockedLaneRow>(
  "lock-lanes",
  `SELECT l.chain_id, l.signer, l.owner_instance, l.token, l.next_nonce, l.suspended_by, l.reconciled_epoch,
     n.node_id
   FROM fencepost.lane AS l
   JOIN (${ROWS}) AS f
     ON l.chain_id = f.chain_id AND l.signer = f.signer AND l.owner_instance = f.instance_id AND l.token = f.token
   JOIN fencepost.node_instance AS n ON n.instance_id = l.owner_instance
   WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
     AND NOT n.dead AND n.expires_at > clock_timestamp()
   ORDER BY l.chain_id, l.signer
   FOR NO KEY UPDATE OF l`,
);

export interface LockedLaneRow {
  readonly chain_id: number;
  readonly signer: string;
  readonly owner_instance: string;
  readonly token: number;
  readonly next_nonce: number | null;
  readonly suspended_by: SuspendedBy | null;
  readonly reconciled_epoch: number;
  readonly node_id: string;
}
