import type { OpenWork, Standing } from "../../../domain/cluster/lane-move.ts";
import type { Hash } from "../../../domain/lane.ts";
import { lists } from "../rows/columns.ts";
import type { UseColumns } from "./policy.ts";
import { statement, taking } from "./statement.ts";

/**
 * Reads a lane's place, and what decides about its move. The lane is locked, so neither changes until COMMIT, except
 * that a caller's own transaction may add an intent: it is refused later.
 */
export const readStanding = statement<StandingRow>("read-standing")`
  SELECT l.place, l.left_by, l.arrives_by, l.carried, l.next_nonce,
    l.suspended_by IS NOT DISTINCT FROM 'HISTORY'
      OR l.reconciled_epoch < (SELECT f.epoch FROM fencepost.feed AS f WHERE f.only_row) AS held,
    (SELECT c.genesis_hash FROM fencepost.chain AS c WHERE c.chain_id = l.chain_id) AS genesis_hash,
    l.departed_below IS NOT NULL
      OR EXISTS (SELECT FROM fencepost.transaction AS t WHERE t.chain_id = l.chain_id AND t.signer = l.signer)
      OR EXISTS (
        SELECT FROM fencepost.reservation AS r
        WHERE r.chain_id = l.chain_id AND r.signer = l.signer AND r.state <> 'RELEASED'
      )
      OR EXISTS (
        SELECT FROM fencepost.intake AS i WHERE i.signer = l.signer AND i.chain_id = l.chain_id AND i.alias_of IS NULL
      ) AS used,
    (
      SELECT count(*) FROM (
        SELECT FROM fencepost.transaction AS t
        WHERE t.chain_id = l.chain_id AND t.signer = l.signer AND t.live AND t.state IN ('ALLOCATED', 'TRACKING', 'STUCK')
        ORDER BY t.nonce
      ) AS live
    ) AS transactions,
    (
      SELECT count(*) FROM fencepost.intake AS i
      WHERE i.signer = l.signer AND i.chain_id = l.chain_id AND i.alias_of IS NULL
    ) AS intents,
    (
      SELECT count(*) FROM fencepost.reservation AS r
      WHERE r.signer = l.signer AND r.chain_id = l.chain_id AND r.state = 'RESERVED'
    ) AS reservations,
    (SELECT count(*) FROM fencepost.hole AS h WHERE h.signer = l.signer AND h.chain_id = l.chain_id) AS holes
  FROM fencepost.lane AS l
  WHERE l.chain_id = $1 AND l.signer = $2`;

export interface StandingRow extends Standing, OpenWork {
  readonly nextNonce: number | null;
  readonly held: boolean;
  readonly used: boolean;
  readonly genesisHash: Hash | null;
}

/**
 * Changes a lane's place, and ends its term: no owner may act on what it remembers of the place. While another cell
 * gives the lane's nonces, its next nonce is frozen. The lane is locked.
 */
export const changePlace = statement("change-place")`
  UPDATE fencepost.lane AS l
  SET place = $3, left_by = $4, arrives_by = $5, carried = $6, owner_instance = NULL,
    still_nonce = CASE WHEN $3 IN ('LEFT', 'EXPECTED') THEN l.next_nonce END
  WHERE l.chain_id = $1 AND l.signer = $2`;

/** Notes the last page of request ids that was taken over. The lane is locked. */
export const noteCarried = statement("note-carried")`
  UPDATE fencepost.lane AS l SET carried = $3 WHERE l.chain_id = $1 AND l.signer = $2`;

/**
 * Opens a lane that has arrived. Its transactions stay at the cell that it left, so all nonces below its next one count
 * as removed ($4 null: none was ever given). It gives its first nonce only after it was compared with the chain.
 */
export const openLane = statement("open-lane")`
  UPDATE fencepost.lane AS l
  SET place = 'HERE', left_by = NULL, carried = NULL, still_nonce = NULL, owner_instance = NULL,
    arrives_by = $3, next_nonce = $4, departed_below = greatest(l.departed_below, $4), reconciled_epoch = 0,
    use_hour = $5::timestamptz, hour_value = $6::numeric, hour_cost = $7::numeric, day_value = $8::numeric, day_cost = $9::numeric
  WHERE l.chain_id = $1 AND l.signer = $2`;

const CARRIED = "digest bytea, chain_id bigint";

/** Stores request ids that a lane used at another cell. */
export const carryRequests = taking(CARRIED)("carry-requests")`
  INSERT INTO fencepost.spent_request (digest, chain_id, left_at)
  SELECT decode(c.digest, 'hex'), c.chain_id, now() FROM (${lists(CARRIED)}) AS c
  ORDER BY c.digest
  ON CONFLICT (digest) DO NOTHING`;

/** Reads what a lane takes along beside its request ids. */
export const readBaggage = statement<BaggageRow>("read-baggage")`
  SELECT l.place, l.left_by, l.arrives_by, l.carried, l.next_nonce, l.departed_below IS NOT NULL AS departed,
    l.use_hour, l.hour_value, l.hour_cost, l.day_value, l.day_cost,
    (SELECT c.genesis_hash FROM fencepost.chain AS c WHERE c.chain_id = l.chain_id) AS genesis_hash
  FROM fencepost.lane AS l
  WHERE l.chain_id = $1 AND l.signer = $2`;

export interface BaggageRow extends Standing, UseColumns {
  readonly nextNonce: number | null;
  /** True if retention has removed transactions of the lane. */
  readonly departed: boolean;
  readonly genesisHash: Hash | null;
}

/** A digest of a request id; null for a row without one. `key`: the row's place in the order of its statement. */
export interface CarriedRow {
  readonly key: string;
  readonly digest: string | null;
}

const OVER = (outcome: string) => `
    SELECT t.tx_id, t.request_id FROM fencepost.transaction AS t
    WHERE hashtextextended(t.outcome || t.signer, t.chain_id) = hashtextextended('${outcome}' || $2, $1)
      AND t.outcome = '${outcome}' AND t.signer = $2 AND t.chain_id = $1 AND t.tx_id > $3::uuid
    ORDER BY hashtextextended(t.outcome || t.signer, t.chain_id), t.tx_id LIMIT $4`;

/** Request ids of a lane's transactions, by id, after $3; at most $4. Each part is a range of one index. */
export const carriedByTransactions = statement<CarriedRow>("carried-by-transactions")`
  SELECT t.tx_id::text AS key, encode(fencepost.request_digest($1, $2, t.request_id), 'hex') AS digest
  FROM (
    (
    SELECT t.tx_id, t.request_id FROM fencepost.transaction AS t
    WHERE hashtextextended(t.signer, t.chain_id) = hashtextextended($2, $1)
      AND t.signer = $2 AND t.chain_id = $1 AND t.live AND t.tx_id > $3::uuid
    ORDER BY hashtextextended(t.signer, t.chain_id), t.tx_id LIMIT $4
    ) UNION ALL (${OVER("CONFIRMED")}
    ) UNION ALL (${OVER("FAILED_FINAL")}
    )
  ) AS t
  ORDER BY t.tx_id LIMIT $4`;

/** Request ids under which nonces of a lane were reserved, by the reservation's id, after $3; at most $4. */
export const carriedByReservations = statement<CarriedRow>("carried-by-reservations")`
  SELECT r.reservation_id::text AS key, encode(fencepost.request_digest($1, $2, r.request_id), 'hex') AS digest
  FROM fencepost.reservation AS r
  WHERE r.chain_id = $1 AND r.signer = $2 AND r.reservation_id > $3::uuid
  ORDER BY r.reservation_id LIMIT $4`;

/** Request ids of messages that the signer was asked to sign, by the signature's id, after $3; at most $4. */
export const carriedBySignatures = statement<CarriedRow>("carried-by-signatures")`
  SELECT s.signature_id::text AS key, encode(fencepost.request_digest($1, 'sign ' || $2, s.request_id), 'hex') AS digest
  FROM fencepost.signature AS s
  WHERE s.signer = $2 AND s.chain_id = $1 AND s.signature_id > $3::uuid
  ORDER BY s.signature_id LIMIT $4`;

/**
 * Request ids whose transactions retention has removed, by digest, after $2; at most $3. A digest does not name its
 * lane, so those of other lanes of the chain are among them: at another cell they match nothing.
 */
export const carriedByRemoved = statement<CarriedRow>("carried-by-removed")`
  SELECT encode(s.digest, 'hex') AS key, encode(s.digest, 'hex') AS digest
  FROM fencepost.spent_request AS s
  WHERE s.chain_id = $1 AND s.digest > decode($2, 'hex')
  ORDER BY s.digest LIMIT $3`;
