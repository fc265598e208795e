import type { SuspendedBy } from "../../../ports/lane-store.ts";
import { statement } from "./statement.ts";

/** The lane of a term that still holds; nothing where it does not. Read, not locked: writes prove it again. */
export const readLane = statement<LaneStateRow>(
  "read-lane",
  `SELECT l.next_nonce, l.suspended_by, l.live_allocated AS allocated,
     l.reconciled_epoch >= (SELECT f.epoch FROM fencepost.feed AS f WHERE f.only_row) AS reconciled,
     (
       SELECT e.next_nonce FROM fencepost.epoch_floor AS e WHERE e.signer = l.signer AND e.chain_id = l.chain_id
     ) AS epoch_floor,
     (SELECT c.genesis_hash FROM fencepost.chain AS c WHERE c.chain_id = l.chain_id) AS genesis_hash
   FROM fencepost.lane AS l
   WHERE l.chain_id = $1 AND l.signer = $2 AND l.owner_instance = $3 AND l.token = $4
     AND (
       SELECT NOT n.dead AND n.expires_at > clock_timestamp() FROM fencepost.node_instance AS n WHERE n.instance_id = $3
     )`,
);

export interface LaneStateRow {
  readonly next_nonce: number | null;
  readonly suspended_by: SuspendedBy | null;
  readonly reconciled: boolean;
  readonly allocated: number;
  readonly epoch_floor: number | null;
  readonly genesis_hash: string | null;
}
