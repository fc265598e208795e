import type { Lane } from "../../../domain/lane.ts";
import type { Reservation } from "../../../domain/transaction/reservations.ts";
import { type Flat, LANE, lists, names } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

const OPENED = `reservation_id uuid, ${LANE}, nonce bigint, request_id text, owner text, expires_at timestamptz,
  state text, tx_id uuid` as const;

/** Inserts reservations by plain inserts: a nonce or a request id that is already reserved must end the commit. */
export const insertReservations = taking(OPENED)("insert-reservations")`
  INSERT INTO fencepost.reservation (${names(OPENED)}, created_at)
  SELECT ${names(OPENED)}, now() FROM (${lists(OPENED)}) AS r`;

const SETTLED = "reservation_id uuid, from_state text, state text, tx_id uuid";

/** Changes the state of reservations, each only from the state in which it was read. */
export const settleReservations = changing(SETTLED, "settle-reservations", "settled reservations")`
  UPDATE fencepost.reservation AS r SET state = s.state, tx_id = s.tx_id FROM (${lists(SETTLED)}) AS s
  WHERE r.reservation_id = ANY ($1::uuid[]) AND r.reservation_id = s.reservation_id AND r.state = s.from_state`;

/**
 * SQL: lifetime of a reservation in whole milliseconds. It is rounded up, because the stored times have microseconds.
 */
const TTL_MS = "ceil(extract(epoch FROM r.expires_at - r.created_at) * 1000)::float8 AS ttl_ms";

/** SQL: reservations with the time that each has left, by the database's clock. */
const RESERVATIONS = `SELECT r.reservation_id, r.chain_id, r.signer, r.nonce, r.request_id, r.owner, r.state, r.expires_at,
     r.tx_id, ${TTL_MS},
     clock_timestamp() AS asked_at, extract(epoch FROM r.expires_at - clock_timestamp())::float8 * 1000 AS left_ms
   FROM fencepost.reservation AS r`;

/**
 * Finds the reservations that a commit needs, by their own id or by the caller's request id, on every lane; the caller
 * drops those of other lanes. The remaining time is computed with `clock_timestamp()` while the lane is locked, because
 * `now()` would be the time at which the transaction began to wait for the lock.
 */
export const findReservations = statement<ReservationRow>("find-reservations")`
  ${RESERVATIONS}
  WHERE r.reservation_id = ANY ($1::uuid[])
  UNION ALL
  ${RESERVATIONS}
  WHERE r.request_id = ANY ($2::text[]) AND r.request_id IS NOT NULL`;

export type ReservationRow = Flat<Reservation> & { readonly askedAt: Date; readonly leftMs: number };

/** Finds the open reservations of these lanes, lowest nonce first. */
export const findOpenReservations = statement<ReservationRow>("find-open-reservations")`
  ${RESERVATIONS}
  WHERE r.signer = ANY ($1::text[]) AND r.chain_id = ANY ($2::bigint[]) AND r.state = 'RESERVED'
  ORDER BY r.nonce`;

export const readReservation = statement<ReservationRow>("read-reservation")`
  ${RESERVATIONS}
  WHERE r.reservation_id = $1`;

const REPAIR = `${LANE}, tx_id uuid` as const;

/**
 * Records the placeholders that a lane put at nonces of expired reservations by itself (repairs). Those of the current
 * whole hour (UTC) are counted against the lane's limit; those older than two hours are deleted here.
 */
export const insertRepairs = taking(REPAIR)("insert-repairs")`
  WITH forgotten AS (
    DELETE FROM fencepost.reservation_repair AS r
    WHERE r.chain_id = ANY ($1::bigint[]) AND r.signer = ANY ($2::text[]) AND r.repaired_at < now() - interval '2 hours'
  )
  INSERT INTO fencepost.reservation_repair (${names(REPAIR)}, repaired_at)
  SELECT ${names(REPAIR)}, now() FROM (${lists(REPAIR)}) AS r`;

export type RepairRow = Lane & { readonly repairedAt: Date };

export const findRepairs = statement<RepairRow>("find-repairs")`
  SELECT r.chain_id, r.signer, r.repaired_at FROM fencepost.reservation_repair AS r
  WHERE r.signer = ANY ($1::text[]) AND r.chain_id = ANY ($2::bigint[])`;
