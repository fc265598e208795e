import type { SuspendedBy } from "../../../ports/lane-store.ts";
import type { OwnerColumns } from "./list-leases.ts";
import { statement } from "./statement.ts";

/** Lanes with what is open on them: counted from live rows, which are few; what is over is counted on the lane itself. */
export const listLanes = statement<LaneListRow>(
  "list-lanes",
  `SELECT l.chain_id, l.signer, l.next_nonce, l.suspended_by, l.token, l.acquired_at, l.confirmed_total, l.failed_total,
     o.instance_id, o.node_id, o.url, o.expires_at,
     coalesce(open.pending, 0) + coalesce(waiting.pending, 0) AS pending,
     coalesce(open.stuck, 0) AS stuck,
     (
       SELECT count(*) FROM fencepost.reservation AS r
       WHERE r.signer = l.signer AND r.chain_id = l.chain_id AND r.state = 'RESERVED' AND r.expires_at > clock_timestamp()
     ) AS reserved,
     least(open.oldest, waiting.oldest) AS oldest_pending_at,
     (
       SELECT json_build_object('txId', h.tx_id, 'nonce', h.nonce, 'state', h.state, 'createdAt', h.created_at)
       FROM fencepost.transaction AS h
       WHERE h.chain_id = l.chain_id AND h.signer = l.signer AND h.live AND h.nonce = open.head
     ) AS head_of_line
   FROM fencepost.lane AS l
   LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance AND NOT o.dead
   LEFT JOIN (
     SELECT t.chain_id, t.signer, min(t.nonce) AS head,
       count(*) FILTER (WHERE t.state <> 'STUCK') AS pending,
       count(*) FILTER (WHERE t.state = 'STUCK') AS stuck,
       min(t.created_at) FILTER (WHERE t.state <> 'STUCK') AS oldest
     FROM fencepost.transaction AS t
     WHERE t.live AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
     GROUP BY t.chain_id, t.signer
   ) AS open ON open.chain_id = l.chain_id AND open.signer = l.signer
   LEFT JOIN (
     SELECT i.chain_id, i.signer, count(*) AS pending, min(i.created_at) AS oldest
     FROM fencepost.intake AS i
     WHERE i.alias_of IS NULL
     GROUP BY i.chain_id, i.signer
   ) AS waiting ON waiting.chain_id = l.chain_id AND waiting.signer = l.signer
   WHERE ($1::text IS NULL OR l.signer = $1)
   ORDER BY l.signer, l.chain_id`,
);

export interface LaneListRow extends OwnerColumns {
  readonly chain_id: number;
  readonly signer: string;
  readonly next_nonce: number | null;
  readonly suspended_by: SuspendedBy | null;
  readonly token: number;
  readonly acquired_at: Date | null;
  readonly confirmed_total: number;
  readonly failed_total: number;
  readonly pending: number;
  readonly stuck: number;
  readonly reserved: number;
  readonly oldest_pending_at: Date | null;
  readonly head_of_line: {
    readonly txId: string;
    readonly nonce: number;
    readonly state: string;
    readonly createdAt: string;
  } | null;
}
