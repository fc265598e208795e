import type { SuspendedBy } from "../../../ports/lane-store.ts";
import { statement } from "./statement.ts";

/**
 * The lane of a term that still holds; nothing where it does not. Read, not locked: writes prove it again.
 * Where the kept count says that nothing waits to be signed, it is counted: on that word, rows would never be read again.
 * In order of nonces, so that the index of the lane's live rows is walked also by a plan from when the table was empty.
 */
export const readLane = statement<LaneStateRow>(
  "read-lane",
  `SELECT l.next_nonce, l.suspended_by,
     CASE WHEN l.live_allocated > 0 THEN l.live_allocated ELSE (
       SELECT count(*) FROM (
         SELECT FROM fencepost.transaction AS t
         WHERE t.chain_id = $1 AND t.signer = $2 AND t.live AND t.state = 'ALLOCATED'
         ORDER BY t.nonce
       ) AS waiting
     ) END AS allocated,
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
