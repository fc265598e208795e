import type { Lane } from "../../../domain/lane.ts";
import type { LeaseRecord } from "../../../ports/lease-store.ts";
import { ASKED_LANES, type Flat, LANE, lists, type OwnerColumns } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

/** Of the given lanes, finds those whose owner is dead or missing. Does not lock them. */
export const findFreeLanes = taking(LANE)<Lane>("find-free-lanes")`
  SELECT l.chain_id, l.signer
  FROM fencepost.lane AS l
  LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance
  JOIN ${ASKED_LANES}
  WHERE l.owner_instance IS NULL OR o.dead`;

/**
 * Locks at most $4 of the given lanes for instance $3: first those that it already holds, then free ones. Lanes that
 * other transactions have locked are skipped, so that twenty nodes that take lanes at once share them instead of
 * queueing.
 */
export const pickLanes = taking(LANE)<PickedRow>("pick-lanes")`
  SELECT l.chain_id, l.signer, l.token, l.owner_instance IS NOT DISTINCT FROM $3::uuid AS kept
  FROM fencepost.lane AS l
  LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance
  JOIN ${ASKED_LANES}
  WHERE l.owner_instance IS NULL OR l.owner_instance = $3 OR o.dead
  ORDER BY l.owner_instance IS NOT DISTINCT FROM $3::uuid DESC, l.chain_id, l.signer
  LIMIT $4
  FOR NO KEY UPDATE OF l SKIP LOCKED`;

export type PickedRow = Lane & { readonly token: number; readonly kept: boolean };

/**
 * Takes free lanes: never held, released, or of a dead instance. Earlier statements locked the lanes and found them
 * free. This statement checks that again, and ends the transaction if a lane is not free or if instance $3 is not
 * alive.
 */
export const takeLanes = changing(LANE, "take-lanes", "lanes taken")`
  UPDATE fencepost.lane AS l
  SET owner_instance = $3, token = l.token + 1, acquired_at = clock_timestamp()
  FROM (${lists(LANE)}) AS k
  WHERE l.chain_id = ANY ($1::bigint[]) AND l.signer = ANY ($2::text[])
    AND l.chain_id = k.chain_id AND l.signer = k.signer
    AND (
      l.owner_instance IS NULL
      OR coalesce((SELECT o.dead FROM fencepost.node_instance AS o WHERE o.instance_id = l.owner_instance), true)
    )
    AND (
      SELECT NOT n.dead AND n.expires_at > clock_timestamp() FROM fencepost.node_instance AS n WHERE n.instance_id = $3
    )`;

/** SQL: lanes with their owners. The lanes of a dead instance are free, so they have no owner here. */
const LEASES = `SELECT l.chain_id, l.signer, l.token, l.acquired_at, o.instance_id, o.node_id, o.url, o.expires_at
   FROM fencepost.lane AS l
   LEFT JOIN fencepost.node_instance AS o ON o.instance_id = l.owner_instance AND NOT o.dead`;

/** Lists the lanes with their owners. */
export const listLeases = statement<LeaseRow>("list-leases")`
  ${LEASES}
  ORDER BY l.chain_id, l.signer`;

export type LeaseRow = Flat<Omit<LeaseRecord, "owner">> & OwnerColumns;

/** Reads one lane with its owner. If the lane is locked, its owner cannot change until COMMIT. */
export const readLease = statement<LeaseRow>("read-lease")`
  ${LEASES}
  WHERE l.chain_id = $1 AND l.signer = $2`;

/** Locks every lane that an instance holds, in ascending order. */
export const lockLanesOfInstance = statement("lock-lanes-of-instance")`
  SELECT 1 FROM fencepost.lane AS l
  WHERE l.owner_instance = $1
  ORDER BY l.chain_id, l.signer
  FOR NO KEY UPDATE`;

/** Releases a lane if it is still held with this fencing token. */
export const releaseLane = statement<{ readonly chainId: number }>("release-lane")`
  UPDATE fencepost.lane AS l
  SET owner_instance = NULL
  WHERE l.chain_id = $1 AND l.signer = $2 AND l.owner_instance = $3 AND l.token = $4
  RETURNING l.chain_id`;

/** Releases every lane that an instance holds. The fencing token stays; the next owner gets a higher one. */
export const releaseLanes = statement<{ readonly chainId: number }>("release-lanes")`
  UPDATE fencepost.lane AS l SET owner_instance = NULL WHERE l.owner_instance = $1 RETURNING l.chain_id`;

/**
 * Ends the current ownership (term) of all lanes, so that a late write of a former owner is refused. If commits may be
 * lost ($1), the lanes also wait for an operator.
 */
export const endTerms = statement("end-terms")`
  UPDATE fencepost.lane AS l
  SET owner_instance = NULL,
    suspended = l.suspended OR $1::boolean,
    suspended_by = CASE WHEN $1::boolean THEN 'HISTORY' ELSE l.suspended_by END`;
