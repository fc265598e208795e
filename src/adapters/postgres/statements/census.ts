import type { Census } from "../../../ports/query-store.ts";
import { LANE_TOTALS } from "../rows/columns.ts";
import { statement } from "./statement.ts";

type CensusRow = Omit<Census, "states" | "watched"> &
  Census["states"] & { readonly liveConfirmed: number; readonly liveFailed: number };

/**
 * Totals of the whole database, from the counters on the lane rows, so that settled transactions are not read. The
 * oldest waiting transaction is searched only on lanes with pending ones: it has the lowest nonce there. The search
 * starts at the lane's next nonce, minus the number of open transactions, minus 1000, because at most a thousand nonces
 * are reserved or free. So it skips settled rows that are still checked for reorgs, of which a busy lane of a slow
 * chain has tens of thousands. A lane counts as unowned if it has open transactions and no live instance holds it.
 */
export const readCensus = statement<CensusRow>("read-census")`
  SELECT waiting.created AS "CREATED", ${LANE_TOTALS},
    coalesce(sum(l.live_confirmed), 0)::bigint AS live_confirmed,
    coalesce(sum(l.live_failed), 0)::bigint AS live_failed,
    count(*) FILTER (
      WHERE l.live_allocated + l.live_tracking + l.live_stuck > 0 AND (o.instance_id IS NULL OR o.expires_at < clock_timestamp())
    ) AS unowned_lanes,
    count(*) FILTER (WHERE l.suspended) AS suspended_lanes,
    floor(extract(epoch FROM clock_timestamp() - least(waiting.oldest, min(head.created_at))) * 1000)::bigint AS oldest_pending_age_ms
  FROM (
    SELECT count(*) AS created,
      min(i.created_at) FILTER (WHERE i.awaits IS NULL OR i.approved_at IS NOT NULL) AS oldest
    FROM fencepost.intake AS i
    WHERE i.alias_of IS NULL
  ) AS waiting
  LEFT JOIN fencepost.lane AS l ON true
  LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance AND NOT o.dead
  LEFT JOIN LATERAL (
    SELECT t.created_at FROM fencepost.transaction AS t
    WHERE l.live_allocated + l.live_tracking > 0 AND t.chain_id = l.chain_id AND t.signer = l.signer AND t.live
      AND t.state IN ('ALLOCATED', 'TRACKING')
      AND t.nonce >= l.next_nonce - (l.live_allocated + l.live_tracking + l.live_stuck) - 1000
    ORDER BY t.nonce LIMIT 1
  ) AS head ON true
  GROUP BY waiting.created, waiting.oldest`;
