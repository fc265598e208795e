/** Reservations of nonces for callers who sign transactions themselves: reserve, release and expire. */
import type { Hole } from "../nonces/holes.ts";
import type { Reservation } from "../transaction/reservations.ts";
import { Giver } from "./allocate.ts";
import type { Draft } from "./draft.ts";
import { givesNoNonce, isSpent, reservationAt } from "./ledger.ts";
import type { NonceOutcome, ReleaseWrite, ReserveResult, ReserveWrite } from "./writes.ts";

export function reserve(draft: Draft, write: ReserveWrite): NonceOutcome {
  const result = known(draft, write.requestId) ?? keep(draft, write);
  return { status: "reserved", result, cursor: draft.ledger.cursor ?? 0 };
}

/**
 * Returns the result for a repeated reservation request, according to what its request id already belongs to; null if
 * the request is new.
 */
function known({ ledger, past }: Draft, requestId: string | null): ReserveResult | null {
  if (requestId === null) return null;
  const reservationId = ledger.reservedAs.get(requestId);
  const reservation = reservationId === null ? null : ledger.reservations.get(reservationId);
  if (reservation !== null) return { result: "existing", reservation: reservationAt(reservation, past) };
  const taken = ledger.requests.get(requestId);
  if (isSpent(taken)) return { result: "spent" };
  return taken === null ? null : { result: "requestTaken", txId: taken.txId, owner: taken.owner };
}

function keep(draft: Draft, write: ReserveWrite): ReserveResult {
  if (keptFromOthers(draft, write.owner) >= write.most) return { result: "tooMany" };
  const given = givesNoNonce(draft.ledger) ? null : new Giver(draft.ledger, write).next(draft);
  if (given === null) return { result: "noCursor" };
  const { reservationId, requestId, owner, ttlMs } = write;
  const expiresAt = new Date(draft.at.getTime() + ttlMs);
  const reservation: Reservation = {
    reservationId,
    lane: draft.ledger.lane,
    nonce: given.nonce,
    requestId,
    owner,
    state: "RESERVED",
    expiresAt,
    ttlMs,
    txId: null,
  };
  draft.record({ kind: "reserved", reservation });
  return { result: "created", reservation, recycled: given.recycled };
}

/**
 * Number of the lane's nonces that this API key's reservations block for others. Expired reservations count too: until
 * a transaction uses the nonce, all nonces above it are blocked.
 */
function keptFromOthers({ ledger: { reserved, reservations, holes } }: Draft, owner: string | null) {
  const open = reserved.every().filter(([, id]) => reservations.get(id)?.owner === owner);
  const expired = holes.every().filter(([, hole]) => hole.expired?.owner === owner);
  return open.length + expired.length;
}

export function release(draft: Draft, { reservationId }: ReleaseWrite): NonceOutcome {
  const reservation = draft.ledger.reservations.get(reservationId);
  const isOpen = reservation !== null && reservationAt(reservation, draft.past).state === "RESERVED";
  if (!isOpen) return { status: "released", result: "conflict", hole: null };
  return { status: "released", result: "settled", hole: end(draft, reservation, "released") };
}

/** Ends every reservation that is past its time, in ascending order of nonce. */
export function expire(draft: Draft): NonceOutcome {
  const { reserved, reservations } = draft.ledger;
  const open = reserved.every().flatMap(([, reservationId]) => reservations.get(reservationId) ?? []);
  const over = open.filter((reservation) => isOver(reservation, draft.past));
  return { status: "expired", holes: over.map((reservation) => end(draft, reservation, "expired")) };
}

/**
 * True if the reservation has expired, or if its remaining time is more than twice its time to live. In the second case
 * the database's clock was set back, and the nonce would otherwise block the lane for that much longer.
 */
function isOver({ expiresAt, ttlMs }: Reservation, at: Date) {
  const leftMs = expiresAt.getTime() - at.getTime();
  return leftMs <= 0 || leftMs > 2 * ttlMs;
}

function end(draft: Draft, reservation: Reservation, why: "released" | "expired"): Hole {
  const { nonce, reservationId, owner, ttlMs } = reservation;
  settle(draft, reservation, { state: why === "released" ? "RELEASED" : "EXPIRED", txId: null });
  const what = why === "released" ? "its reservation was released" : "its reservation expired unused";
  const left = { nonce, why, detail: `${what} (${reservationId})`, since: draft.at, reservationId };
  const hole = why === "expired" ? { ...left, expired: { owner, ttlMs } } : left;
  draft.record({ kind: "holeLeft", hole });
  return hole;
}

export function settle(draft: Draft, reservation: Reservation, as: Pick<Reservation, "state" | "txId">): void {
  draft.record({ kind: "reservationSettled", reservation: { ...reservation, ...as }, from: reservation.state });
}

/**
 * Returns the reservation if its caller may still submit a transaction for it: no other transaction uses the nonce. An
 * expired reservation can still be used until a placeholder uses its nonce or the chain has passed it.
 */
export function usable({ ledger }: Draft, reservationId: string): Reservation | null {
  const reservation = ledger.reservations.get(reservationId);
  if (reservation?.state === "RESERVED") return reservation;
  const isItsHole =
    reservation?.state === "EXPIRED" && ledger.holes.get(reservation.nonce)?.reservationId === reservationId;
  return isItsHole ? reservation : null;
}
