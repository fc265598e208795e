/** Reservations in a commit: found behind the lane's lock, changed in memory, written once. */
import { type LaneKey, laneKey } from "../../../domain/lane.ts";
import type { Reservation, ReservationState } from "../../../domain/reservations.ts";
import { laneOf } from "../columns.ts";
import {
  insertReservations,
  type OpenReservationRow,
  type ReservationRow,
  settleReservations,
} from "../statements/reservation.ts";
import type { Command } from "../statements/statement.ts";
import type { LanePlan } from "./plan.ts";

/** One reservation as it stands after the steps planned so far. */
interface Standing {
  readonly stored: ReservationState | null;
  readonly past: boolean;
  reservation: Reservation;
}

/** As a reader sees it: what is past is expired, whether or not its lane's owner has got round to it. */
export function reservationOf(row: ReservationRow): Reservation {
  return {
    reservationId: row.reservation_id,
    lane: laneOf(row),
    nonce: row.nonce,
    requestId: row.request_id,
    state: row.state === "RESERVED" && row.past ? "EXPIRED" : (row.state as ReservationState),
    expiresAt: row.expires_at,
    txId: row.tx_id,
  };
}

export class ReservationBook {
  private readonly standing = new Map<string, Standing>();

  constructor(found: readonly ReservationRow[], open: readonly OpenReservationRow[]) {
    for (const row of open)
      this.add({ ...row, request_id: null, tx_id: null, state: "RESERVED", past: row.left_ms <= 0 });
    for (const row of found) this.add(row);
  }

  of(lane: LanePlan, reservationId: string): Reservation | null {
    const found = this.standing.get(reservationId)?.reservation;
    return found !== undefined && isOn(found, lane) ? found : null;
  }

  byRequest(lane: LanePlan, requestId: string): Reservation | null {
    for (const { reservation } of this.standing.values()) {
      if (reservation.requestId === requestId && isOn(reservation, lane)) return reservation;
    }
    return null;
  }

  /** Kept for a caller now, or when this commit began. */
  knew(lane: LanePlan, nonce: number): boolean {
    return [...this.standing.values()].some(
      ({ reservation }) => reservation.nonce === nonce && isOn(reservation, lane),
    );
  }

  /** Open in the database, and past. */
  past(lane: LanePlan): readonly Reservation[] {
    const due = [...this.standing.values()].filter(({ stored, past }) => stored === "RESERVED" && past);
    return due
      .map(({ reservation }) => reservation)
      .filter((reservation) => isOn(reservation, lane) && !this.changed.has(reservation.reservationId))
      .sort((a, b) => a.nonce - b.nonce);
  }

  open(reservation: Reservation): void {
    this.standing.set(reservation.reservationId, { stored: null, past: false, reservation });
  }

  settle(reservationId: string, state: ReservationState, txId: string | null): void {
    const found = this.standing.get(reservationId);
    if (found !== undefined) found.reservation = { ...found.reservation, state, txId };
    if (found !== undefined) this.changed.add(reservationId);
  }

  commands(): readonly Command[] {
    const all = [...this.standing.values()];
    const opened = all.filter(({ stored }) => stored === null).map(({ reservation }) => openedRow(reservation));
    const settled = all.filter(({ reservation }) => this.changed.has(reservation.reservationId)).map(settledRow);
    const ids = settled.map(({ reservation_id }) => reservation_id).sort();
    return [
      ...(opened.length === 0 ? [] : [{ statement: insertReservations, values: [JSON.stringify(opened)] }]),
      ...(ids.length === 0
        ? []
        : [{ statement: settleReservations, values: [JSON.stringify(settled), ids, ids.length] }]),
    ];
  }

  private readonly changed = new Set<string>();

  private add(row: ReservationRow): void {
    const stored = row.state as ReservationState;
    this.standing.set(row.reservation_id, { stored, past: row.past, reservation: reservationOf(row) });
  }
}

function isOn({ lane }: Reservation, { row }: LanePlan): boolean {
  const key: LaneKey = laneKey(laneOf(row));
  return laneKey(lane) === key;
}

function openedRow(reservation: Reservation) {
  return {
    reservation_id: reservation.reservationId,
    chain_id: reservation.lane.chainId,
    signer: reservation.lane.signer,
    nonce: reservation.nonce,
    request_id: reservation.requestId,
    expires_at: reservation.expiresAt,
  };
}

function settledRow({ stored, reservation }: Standing) {
  return {
    reservation_id: reservation.reservationId,
    from_state: stored ?? "RESERVED",
    state: reservation.state,
    tx_id: reservation.txId,
  };
}
