import type { Lane } from "../../../domain/lane.ts";
import type { FoundReservation, FoundTransaction } from "../../../ports/sight-store.ts";
import type { Flat } from "../rows/columns.ts";
import { statement } from "./statement.ts";

/**
 * Statements of the operator's search by typed text. Each scans one index from the text's position, for at most a few
 * rows. OFFSET 0 keeps look-ups by key separate: written as a join, they would make the planner hash the whole table,
 * because nested loops are disabled.
 */

const TRANSACTION = "t.tx_id, t.chain_id, t.signer, t.request_id, t.nonce, t.state, t.sub_state";
const WAITING = `t.tx_id, t.chain_id, t.signer, t.request_id, NULL::bigint AS nonce, 'CREATED' AS state,
    CASE WHEN t.awaits IS NOT NULL AND t.approved_at IS NULL THEN 'AWAITING_APPROVAL' END AS sub_state`;

const search = statement<Flat<FoundTransaction>>;

/** Finds transactions by id, from $1 to $2, at most $3. */
export const searchIds = search("search-ids")`
  (SELECT ${TRANSACTION} FROM fencepost.transaction AS t WHERE t.tx_id >= $1 AND t.tx_id <= $2 ORDER BY t.tx_id LIMIT $3)
  UNION ALL
  (
    SELECT ${WAITING} FROM fencepost.intake AS t
    WHERE t.tx_id >= $1 AND t.tx_id <= $2 AND t.alias_of IS NULL ORDER BY t.tx_id LIMIT $3
  )`;

/** Finds transactions that have an attempt with this hash. */
export const searchHash = search("search-hash")`
  SELECT ${TRANSACTION} FROM fencepost.attempt AS a
  CROSS JOIN LATERAL (SELECT * FROM fencepost.transaction AS own WHERE own.tx_id = a.tx_id OFFSET 0) AS t
  WHERE a.tx_hash = $1`;

/** Finds transactions by request id, from $1 on and below $2, at most $3. */
export const searchRequests = search("search-requests")`
  (
    SELECT ${TRANSACTION} FROM fencepost.transaction AS t
    WHERE t.request_id >= $1 AND t.request_id < $2 AND t.owns_request AND t.request_id IS NOT NULL
    ORDER BY t.request_id, t.signer, t.chain_id LIMIT $3
  )
  UNION ALL
  (
    SELECT ${WAITING} FROM fencepost.intake AS t
    WHERE t.request_id >= $1 AND t.request_id < $2 AND t.request_id IS NOT NULL AND t.alias_of IS NULL
    ORDER BY t.request_id LIMIT $3
  )`;

/** Finds lanes by signer, from $1 on and below $2, at most $3. */
export const searchSigners = statement<Lane>("search-signers")`
  SELECT l.signer, l.chain_id FROM fencepost.lane AS l
  WHERE l.signer >= $1 AND l.signer < $2
  ORDER BY l.signer, l.chain_id LIMIT $3`;

/**
 * Maximum number of lanes that are read in a search for a nonce without a signer. The nonce may exist on every lane, so
 * the search needs a limit.
 */
const LANES_LOOKED_AT = 500;

/** Finds the holders of nonce $3 on lanes of the signers from $1 on and below $2, at most $4. */
export const searchNonce = search("search-nonce")`
  SELECT ${TRANSACTION}
  FROM (
    SELECT l.signer, l.chain_id FROM fencepost.lane AS l
    WHERE l.signer >= $1 AND l.signer < $2 AND l.next_nonce > $3
    ORDER BY l.signer, l.chain_id LIMIT ${LANES_LOOKED_AT}
  ) AS lane
  CROSS JOIN LATERAL (
    SELECT * FROM fencepost.transaction AS own
    WHERE own.chain_id = lane.chain_id AND own.signer = lane.signer AND own.nonce = $3
    OFFSET 0
  ) AS t
  LIMIT $4`;

/** Finds reservations by id, from $1 to $2, at most $3. */
export const searchReservations = statement<Flat<FoundReservation>>("search-reservations")`
  SELECT r.reservation_id, r.chain_id, r.signer, r.nonce, r.state FROM fencepost.reservation AS r
  WHERE r.reservation_id >= $1 AND r.reservation_id <= $2
  ORDER BY r.reservation_id LIMIT $3`;
