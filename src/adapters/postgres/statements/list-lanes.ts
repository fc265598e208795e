import type { SuspendedBy } from "../../../ports/lane-store.ts";
import type { OwnerColumns } from "./list-leases.ts";
import { statement } from "./statement.ts";

/**
 * At most $4 lanes after ($1 signer, $2 chain), up to signer $3, with what is open on them: as kept beside and on the lane,
 * never counted. The oldest that waits is the one of the lowest nonce or of the lowest id, which differ only where a
 * transaction took a nonce that had become free, or another nonce than its first.
 */
export const listLanes = statement<LaneListRow>(
  "list-lanes",
  `SELECT l.chain_id, l.signer, l.next_nonce, l.suspended_by, l.token, l.acquired_at, l.confirmed_total, l.failed_total,
     o.instance_id, o.node_id, o.url, o.expires_at,
     kept.pending + waiting.pending AS pending,
     kept.stuck,
     (
       SELECT count(*) FROM fencepost.reservation AS r
       WHERE r.signer = l.signer AND r.chain_id = l.chain_id AND r.state = 'RESERVED' AND r.expires_at > clock_timestamp()
     ) AS reserved,
     least(waiting.oldest, CASE WHEN kept.pending > 0 THEN (
       SELECT t.created_at FROM fencepost.transaction AS t
       WHERE t.chain_id = l.chain_id AND t.signer = l.signer AND t.live AND t.state IN ('ALLOCATED', 'TRACKING')
       ORDER BY t.nonce LIMIT 1
     ) END, CASE WHEN kept.pending > 0 THEN (
       SELECT t.created_at FROM fencepost.transaction AS t
       WHERE hashtextextended(t.signer, t.chain_id) >= hashtextextended(l.signer, l.chain_id)
         AND hashtextextended(t.signer, t.chain_id) <= hashtextextended(l.signer, l.chain_id)
         AND t.signer = l.signer AND t.chain_id = l.chain_id AND t.live AND t.state IN ('ALLOCATED', 'TRACKING')
       ORDER BY hashtextextended(t.signer, t.chain_id), t.tx_id LIMIT 1
     ) END) AS oldest_pending_at,
     CASE WHEN kept.pending + kept.stuck > 0 THEN (
       SELECT json_build_object('txId', h.tx_id, 'nonce', h.nonce, 'state', h.state, 'createdAt', h.created_at)
       FROM fencepost.transaction AS h
       WHERE h.chain_id = l.chain_id AND h.signer = l.signer AND h.live AND h.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
       ORDER BY h.nonce LIMIT 1
     ) END AS head_of_line
   FROM (
     SELECT * FROM fencepost.lane AS known
     WHERE (known.signer, known.chain_id) > ($1::text, $2::bigint) AND known.signer <= $3::text
     ORDER BY known.signer, known.chain_id LIMIT $4
   ) AS l
   LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance AND NOT o.dead
   CROSS JOIN LATERAL (
     SELECT coalesce(sum(c.count) FILTER (WHERE c.state <> 'STUCK'), 0)::bigint AS pending,
       coalesce(sum(c.count) FILTER (WHERE c.state = 'STUCK'), 0)::bigint AS stuck
     FROM fencepost.live_count AS c
     WHERE c.state IN ('ALLOCATED', 'TRACKING', 'STUCK') AND c.chain_id = l.chain_id AND c.signer = l.signer
   ) AS kept
   CROSS JOIN LATERAL (
     SELECT count(*) AS pending, min(i.created_at) AS oldest FROM fencepost.intake AS i
     WHERE i.signer = l.signer AND i.chain_id = l.chain_id AND i.alias_of IS NULL
   ) AS waiting
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
