/** From rows to what the domain calls them. */
import { grouped } from "../../domain/grouped.ts";
import type { Hole, HoleCause } from "../../domain/holes.ts";
import type { Hash } from "../../domain/lane.ts";
import type { Reservation, ReservationState } from "../../domain/reservations.ts";
import type { Attempt, AttemptKind } from "../../domain/transaction.ts";
import type { State } from "../../domain/transitions.ts";
import type { ExistingTransaction } from "../../ports/lane-store.ts";
import { feesOf, laneOf, prefixed } from "./columns.ts";
import type { AttemptRow } from "./statements/attempt.ts";
import type { HoleRow } from "./statements/hole.ts";
import type { ReservationRow } from "./statements/reservation.ts";
import type { ExistingRow } from "./statements/transaction.ts";

export function attemptOf(row: AttemptRow): Attempt {
  return {
    ordinal: row.ordinal,
    kind: row.kind as AttemptKind,
    txHash: row.tx_hash as Hash | null,
    gas: BigInt(row.gas),
    fees: feesOf(row),
    ...(row.is_foreign ? { foreign: true as const } : {}),
    ...(row.node_signed ? { nodeSigned: true as const } : {}),
  };
}

export function existingOf(row: ExistingRow): ExistingTransaction {
  return {
    txId: row.tx_id,
    lane: laneOf(row),
    requestId: row.request_id,
    nonce: row.nonce,
    state: row.state as State,
    fingerprint: prefixed(row.fingerprint),
  };
}

export function holeOf(row: HoleRow): Hole {
  return {
    nonce: row.nonce,
    why: row.why as HoleCause,
    detail: row.detail,
    since: row.since,
    reservationId: row.reservation_id,
  };
}

/** As it is stored: whether it is past, `reservationAt` says. */
export function reservationOf(row: Omit<ReservationRow, "asked_at">): Reservation {
  return {
    reservationId: row.reservation_id,
    lane: laneOf(row),
    nonce: row.nonce,
    requestId: row.request_id,
    state: row.state as ReservationState,
    expiresAt: row.expires_at,
    txId: row.tx_id,
  };
}

export function groupByTransaction<Row extends { readonly tx_id: string }>(
  rows: readonly Row[],
): ReadonlyMap<string, readonly Row[]> {
  return grouped(rows, (row) => row.tx_id);
}
