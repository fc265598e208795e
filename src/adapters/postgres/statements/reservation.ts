import type { Lane } from "../../../domain/lane.ts";
import type { Reservation } from "../../../domain/transaction/reservations.ts";
import { type Flat, LANE, lists, names } from "../rows/columns.ts";
import { changing, statement, taking } from "./statement.ts";

const OPENED = `reservation_id uuid, ${LANE}, nonce bigint, request_id text, owner text, expires_at timestamptz,
  state text, tx_id uuid` as const;

/** Plain inserts: a nonce or a request id that is reserved already must end the commit. */
export const insertReservations = taking(OPENED)("insert-reservations")`
  INSERT INTO fencepost.reservation (${names(OPENED)}, created_at)
  SELECT ${names(OPENED)}, now() FROM (${lists(OPENED)}) AS r`;

const SETTLED = "reservation_id uuid, from_state text, state text, tx_id uuid";

/** Moves reservations on, each only from the state it was read in. */
export const settleReservations = changing(SETTLED, "settle-reservations", "settled reservations")`
  UPDATE fencepost.reservation AS r SET state = s.state, tx_id = s.tx_id FROM (${lists(SETTLED)}) AS s
  WHERE r.reservation_id = ANY ($1::uuid[]) AND r.reservation_id = s.reservation_id AND r.state = s.from_state`;

/** A row is created at a microsecond, and ends at a whole millisecond counted from that. */
const TTL_MS = "ceil(extract(epoch FROM r.expires_at - r.created_at) * 1000)::float8 AS ttl_ms";

/** Reservations with the time that each has left, by the database's clock. */
const RESERVATIONS = `SELECT r.reservation_id, r.chain_id, r.signer, r.nonce, r.request_id, r.owner, r.state, r.expires_at,
     r.tx_id, ${TTL_MS},
     clock_timestamp() AS asked_at, extract(epoch FROM r.expires_at - clock_timestamp())::float8 * 1000 AS left_ms
   FROM fencepost.reservation AS r`;

/**
 * Reservations of a commit, by their own id or by the caller's, of every lane: the reader drops those of other lanes.
 * Whether one is past is judged by the database's clock behind the lane's lock: `now()` would be the moment at which
 * the transaction began to wait.
 */
export const findReservations = statement<ReservationRow>("find-reservations")`
  ${RESERVATIONS}
  WHERE r.reservation_id = ANY ($1::uuid[])
  UNION ALL
  ${RESERVATIONS}
  WHERE r.request_id = ANY ($2::text[]) AND r.request_id IS NOT NULL`;

export type ReservationRow = Flat<Reservation> & { readonly askedAt: Date; readonly leftMs: number };

/** Open reservations of these lanes, lowest nonce first. */
export const findOpenReservations = statement<ReservationRow>("find-open-reservations")`
  ${RESERVATIONS}
  WHERE r.signer = ANY ($1::text[]) AND r.chain_id = ANY ($2::bigint[]) AND r.state = 'RESERVED'
  ORDER BY r.nonce`;

export const readReservation = statement<ReservationRow>("read-reservation")`
  ${RESERVATIONS}
  WHERE r.reservation_id = $1`;

const REPAIR = `${LANE}, tx_id uuid` as const;

/** Counted within an hour: what was before the last one is removed on the way. */
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
