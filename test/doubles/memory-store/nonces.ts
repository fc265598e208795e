import { type Hole, isFree, skippedHole } from "../../../src/domain/holes.ts";
import { type Lane, laneKey } from "../../../src/domain/lane.ts";
import type { Reservation } from "../../../src/domain/reservations.ts";
import {
  BatchRefused,
  type OpenReservation,
  type TransitionItem,
  type WriteOutcome,
} from "../../../src/ports/lane-store.ts";
import type {
  BindWrite,
  FindSkippedWrite,
  NonceWrite,
  ReleaseWrite,
  ReserveFate,
  ReserveWrite,
  SettleFate,
} from "../../../src/ports/nonce-writes.ts";
import { insertAllocated } from "./allocate.ts";
import { isHeld, type Work } from "./commit.ts";
import { refuseNul } from "./refusals.ts";
import { type DatabaseState, type LaneRow, nonceKey, requestKey, sameLane, type TransactionRow } from "./state.ts";
import { applyTransition } from "./transition.ts";

/** A free hole first, else the cursor; null where the lane has neither cursor nor floor. */
export function giveNonce(
  work: Work,
  lane: LaneRow,
  { floor, fill = [] }: { readonly floor: number | null; readonly fill?: readonly number[] },
): { readonly nonce: number; readonly recycled: boolean } | null {
  if (lane.cursor === null && floor === null) return null;
  const free = holesOf(work.state, lane.lane).filter((hole) => isFree(hole) && hole.nonce >= (floor ?? 0));
  const hole = free.find(({ nonce }) => fill.includes(nonce));
  if (hole !== undefined) {
    work.log.delete(work.state.holes, nonceKey(lane.lane, hole.nonce));
    return { nonce: hole.nonce, recycled: true };
  }
  const nonce = Math.max(lane.cursor ?? 0, floor ?? 0);
  work.log.assign(lane, { cursor: nonce + 1 });
  return { nonce, recycled: false };
}

export function applyNonceWrite(work: Work, lane: LaneRow, write: NonceWrite): WriteOutcome {
  switch (write.kind) {
    case "reserve":
      return { status: "reserved", fate: reserve(work, lane, write), cursor: lane.cursor ?? 0 };
    case "release":
      return release(work, lane, write);
    case "expire":
      return { status: "expired", holes: expire(work, lane.lane) };
    case "bind":
      return bind(work, lane, write);
    case "closeHoles":
      for (const nonce of write.nonces) work.log.delete(work.state.holes, nonceKey(lane.lane, nonce));
      return { status: "done" };
    case "findSkipped":
      return { status: "skipped", holes: findSkipped(work, lane, write) };
  }
}

function findSkipped(work: Work, lane: LaneRow, { from, below }: FindSkippedWrite): readonly Hole[] {
  const { state, now } = work;
  const reserved = new Set(openOn(state, lane.lane).map(({ nonce }) => nonce));
  const holes: Hole[] = [];
  for (let nonce = from; nonce < Math.min(below, lane.cursor ?? 0); nonce++) {
    const key = nonceKey(lane.lane, nonce);
    if (!state.nonces.has(key) && !state.holes.has(key) && !reserved.has(nonce)) holes.push(skippedHole(nonce, now));
  }
  for (const hole of holes) leave(work, lane.lane, hole);
  return holes;
}

/** Lowered, but never to a nonce that may have left. */
export function realign(work: Work, lane: LaneRow, floor: number): WriteOutcome {
  const { state, log } = work;
  const held = [
    ...[...state.nonces.values()].filter((row) => sameLane(row.lane, lane.lane)),
    ...[...state.reservations.values()].filter((each) => each.state !== "RELEASED" && sameLane(each.lane, lane.lane)),
  ].map(({ nonce }) => (nonce ?? -1) + 1);
  const lowest = Math.max(floor, ...held);
  const cursor = Math.min(lane.cursor ?? lowest, lowest);
  for (const { nonce } of holesOf(state, lane.lane)) {
    if (nonce >= cursor) log.delete(state.holes, nonceKey(lane.lane, nonce));
  }
  log.assign(lane, { cursor });
  return { status: "aligned", cursor };
}

export function holesOf(state: DatabaseState, lane: Lane): readonly Hole[] {
  return [...state.holes.values()]
    .filter((entry) => sameLane(entry.lane, lane))
    .map(({ hole }) => hole)
    .sort((a, b) => a.nonce - b.nonce);
}

export function openReservations(state: DatabaseState, lane: Lane, now: Date): readonly OpenReservation[] {
  return openOn(state, lane).map(({ reservationId, nonce, expiresAt }) => ({
    reservationId,
    nonce,
    leftMs: expiresAt.getTime() - now.getTime(),
  }));
}

/** As a reader sees it: what is past is expired, whether or not its lane's owner has got round to it. */
export function seen(reservation: Reservation, now: Date): Reservation {
  const past = reservation.state === "RESERVED" && reservation.expiresAt <= now;
  return past ? { ...reservation, state: "EXPIRED" } : reservation;
}

/**
 * Down into a free hole, or given up: either way the nonce it had is a hole from now on. Requeued, it gets the lane's
 * next. Null: there is no such hole.
 */
export function changedNonce(work: Work, row: TransactionRow, item: TransitionItem): Partial<TransactionRow> | null {
  const { nonce } = row;
  if (item.event === "requeue" && nonce !== null) return requeuedNonce(work, row, nonce);
  if (nonce === null || (item.nonce === undefined && item.event !== "giveUp")) return {};
  if (row.attempts.length > 0) throw new BatchRefused(`transaction ${item.txId} was signed at nonce ${nonce}`);
  const { state, log, now } = work;
  const left = { nonce, since: now, reservationId: null };
  log.delete(state.nonces, nonceKey(row.lane, nonce));
  if (item.nonce === undefined) {
    leave(work, row.lane, { ...left, why: "givenUp", detail: `${item.txId} gave it up: ${item.reason ?? ""}` });
    log.delete(state.live.get(laneKey(row.lane)) ?? new Map(), row.txId);
    return { nonce: null, live: false };
  }
  const target = state.holes.get(nonceKey(row.lane, item.nonce))?.hole;
  if (item.nonce >= nonce || target === undefined || !isFree(target)) {
    log.set(state.nonces, nonceKey(row.lane, nonce), row);
    return null;
  }
  log.delete(state.holes, nonceKey(row.lane, item.nonce));
  leave(work, row.lane, { ...left, why: "shiftedDown", detail: `${item.txId} moved down to ${item.nonce}` });
  log.set(state.nonces, nonceKey(row.lane, item.nonce), row);
  return { nonce: item.nonce };
}

function requeuedNonce({ state, log }: Work, row: TransactionRow, old: number): Partial<TransactionRow> {
  const lane = state.lanes.get(laneKey(row.lane)) as LaneRow;
  const nonce = lane.cursor ?? 0;
  log.assign(lane, { cursor: nonce + 1 });
  log.delete(state.nonces, nonceKey(row.lane, old));
  log.set(state.nonces, nonceKey(row.lane, nonce), row);
  return { nonce };
}

function reserve(work: Work, lane: LaneRow, write: ReserveWrite): ReserveFate {
  const { state, log, now } = work;
  const { requestId, reservationId } = write;
  refuseNul(requestId);
  if (requestId !== null) {
    const reservation = [...state.reservations.values()].find(
      (each) => each.requestId === requestId && sameLane(each.lane, lane.lane),
    );
    if (reservation !== undefined) return { fate: "existing", reservation: seen(reservation, now) };
    const transaction = state.requests.get(requestKey(lane.lane, requestId));
    if (transaction !== undefined) return { fate: "requestTaken", txId: transaction.txId };
  }
  const given = isHeld(state, lane) ? null : giveNonce(work, lane, write);
  if (given === null) return { fate: "noCursor" };
  const expiresAt = new Date(now.getTime() + write.ttlMs);
  const { nonce, recycled } = given;
  const reservation: Reservation = {
    ...{ reservationId, lane: lane.lane, nonce, requestId, state: "RESERVED", expiresAt, txId: null },
  };
  if (state.reservations.has(reservationId)) throw new BatchRefused(`reservation ${reservationId} exists`);
  log.set(state.reservations, reservationId, reservation);
  return { fate: "created", reservation, recycled };
}

function release(work: Work, lane: LaneRow, { reservationId }: ReleaseWrite): WriteOutcome {
  const { reservation, fate } = judged(work, lane.lane, reservationId);
  if (fate !== "settled" || reservation === null) return { status: "released", fate, hole: null };
  work.log.set(work.state.reservations, reservationId, { ...reservation, state: "RELEASED" });
  const hole = holeAfter(reservation, "released", work.now);
  leave(work, lane.lane, hole);
  return { status: "released", fate, hole };
}

function expire(work: Work, lane: Lane): readonly Hole[] {
  const past = openOn(work.state, lane).filter(({ expiresAt }) => expiresAt <= work.now);
  return past.map((reservation) => {
    work.log.set(work.state.reservations, reservation.reservationId, { ...reservation, state: "EXPIRED" });
    const hole = holeAfter(reservation, "expired", work.now);
    leave(work, lane, hole);
    return hole;
  });
}

function bind(work: Work, lane: LaneRow, write: BindWrite): WriteOutcome {
  const { intent, attempt, fence, nonce, reason, decision } = write;
  const taken = intent.requestId !== null && work.state.requests.has(requestKey(lane.lane, intent.requestId));
  const requestId = taken ? null : intent.requestId;
  const fate = isHeld(work.state, lane) ? "held" : takeNonce(work, lane.lane, write);
  const outcome = { status: "bound", fate, createdAt: work.now, requestId } as const;
  if (fate !== "settled") return outcome;
  insertAllocated(work, { item: { intent: { ...intent, requestId } }, nonce, write });
  applyTransition(work, fence, {
    ...{ txId: intent.txId, event: "sign", from: "ALLOCATED", to: "TRACKING", subState: "PENDING" },
    ...{ reason, attempt },
    ...(attempt.rawTransaction === null ? {} : { claim: { ordinal: attempt.ordinal } }),
    ...(decision === undefined ? {} : { decision }),
  });
  return outcome;
}

function takeNonce(work: Work, lane: Lane, { reservation, nonce, intent }: BindWrite): SettleFate {
  const { state, log } = work;
  if (reservation === undefined || reservation.becomes === "EXPIRED") {
    if (!state.holes.has(nonceKey(lane, nonce))) return "conflict";
    log.delete(state.holes, nonceKey(lane, nonce));
    const left = reservation === undefined ? undefined : state.reservations.get(reservation.reservationId);
    if (left !== undefined) log.set(state.reservations, left.reservationId, { ...left, txId: intent.txId });
    return "settled";
  }
  const found = judged(work, lane, reservation.reservationId);
  if (found.reservation === null || found.reservation.nonce !== nonce) return "conflict";
  if (found.fate !== "settled") return found.fate;
  const settled = { ...found.reservation, state: reservation.becomes, txId: intent.txId };
  log.set(state.reservations, reservation.reservationId, settled);
  return "settled";
}

function judged({ state, now }: Work, lane: Lane, id: string): { reservation: Reservation | null; fate: SettleFate } {
  const reservation = state.reservations.get(id);
  if (reservation === undefined || !sameLane(reservation.lane, lane)) return { reservation: null, fate: "conflict" };
  const { state: standing } = seen(reservation, now);
  if (standing === "RESERVED") return { reservation, fate: "settled" };
  return { reservation, fate: standing === "EXPIRED" ? "late" : "conflict" };
}

function openOn(state: DatabaseState, lane: Lane): readonly Reservation[] {
  return [...state.reservations.values()]
    .filter((each) => each.state === "RESERVED" && sameLane(each.lane, lane))
    .sort((a, b) => a.nonce - b.nonce);
}

function leave({ state, log }: Work, lane: Lane, hole: Hole): void {
  const key = nonceKey(lane, hole.nonce);
  if (state.holes.has(key)) throw new BatchRefused(`nonce ${hole.nonce} is a hole already`);
  log.set(state.holes, key, { lane, hole });
}

function holeAfter({ nonce, reservationId }: Reservation, why: "released" | "expired", since: Date): Hole {
  const detail = why === "released" ? "its reservation was released" : "its reservation expired unused";
  return { nonce, why, detail: `${detail} (${reservationId})`, since, reservationId };
}
