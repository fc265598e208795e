/** Common parts of statements about notices and about instances. */
import { MOST_EVIDENCE } from "../../../domain/cluster/notices.ts";

/** A repeat of an existing row: `n`, by the row that was to be inserted. */
export const MERGED = `last_seen_at = EXCLUDED.last_seen_at, times = n.times + EXCLUDED.times, evidence = (
    SELECT jsonb_agg(e.item ORDER BY e.place)
    FROM jsonb_array_elements(EXCLUDED.evidence || n.evidence) WITH ORDINALITY AS e(item, place)
    WHERE e.place <= ${MOST_EVIDENCE}
  )`;

/**
 * Behind 'WITH gone AS (...)', an instance that was declared dead by this statement, for the reason $3: a notice, unless it was
 * draining and had nothing left. By clock_timestamp(): the transaction may have waited for the row.
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

/** The node of an instance that registers ($2) is back. */
export const END_VANISHED = `
  UPDATE fencepost.notice AS n SET over_at = clock_timestamp()
  WHERE n.kind = 'NODE_VANISHED' AND n.node_id = $2 AND n.acknowledged_at IS NULL AND n.over_at IS NULL`;

export const OPEN = "n.acknowledged_at IS NULL AND n.over_at IS NULL";

export const COUNT_OPEN = `SELECT count(*) FROM fencepost.notice AS n WHERE ${OPEN}`;
