/** SQL parts shared by statements about notices and instances. */
import { MOST_EVIDENCE } from "../../../domain/cluster/notices.ts";

/** SQL that merges a repeated notice into the existing row `n`. */
export const MERGED = `last_seen_at = EXCLUDED.last_seen_at, times = n.times + EXCLUDED.times, evidence = (
    SELECT jsonb_agg(e.item ORDER BY e.place)
    FROM jsonb_array_elements(EXCLUDED.evidence || n.evidence) WITH ORDINALITY AS e(item, place)
    WHERE e.place <= ${MOST_EVIDENCE}
  )`;

/**
 * SQL that follows `WITH gone AS (...)`, where `gone` is an instance that the same statement declared dead. Adds a
 * notice with the reason $3, unless the instance was draining and owned no lanes. Uses clock_timestamp(), because the
 * transaction may have waited for the row.
 */
export const NOTE_VANISHED = `
  INSERT INTO fencepost.notice AS n (kind, node_id, first_seen_at, last_seen_at, times, evidence)
  SELECT 'NODE_VANISHED', g.node_id, clock_timestamp(), clock_timestamp(), 1, jsonb_build_array(jsonb_build_object(
    'at', clock_timestamp(), 'instanceId', g.instance_id, 'why', $3::text, 'lanes', held.lanes
  ))
  FROM gone AS g
  CROSS JOIN LATERAL (
    SELECT count(*) AS lanes FROM fencepost.lane AS l WHERE l.owner_instance = g.instance_id
  ) AS held
  WHERE NOT g.draining OR held.lanes > 0
  ON CONFLICT (node_id) WHERE kind = 'NODE_VANISHED' AND acknowledged_at IS NULL AND over_at IS NULL
  DO UPDATE SET ${MERGED}`;

/** SQL that ends the notice about a vanished node when an instance of that node ($2) registers. */
export const END_VANISHED = `
  UPDATE fencepost.notice AS n SET over_at = clock_timestamp()
  WHERE n.kind = 'NODE_VANISHED' AND n.node_id = $2 AND n.acknowledged_at IS NULL AND n.over_at IS NULL`;

export const OPEN = "n.acknowledged_at IS NULL AND n.over_at IS NULL";

export const COUNT_OPEN = `SELECT count(*) FROM fencepost.notice AS n WHERE ${OPEN}`;
