/** Nonces that are kept for callers who sign themselves: given, released, expired. */
import type { Hole } from "../holes.ts";
import type { Reservation } from "../reservations.ts";
import type { Draft } from "./draft.ts";
import { Giver } from "./give-nonce.ts";
import { isHeld, reservationAt } from "./ledger.ts";
import type { NonceOutcome, ReleaseWrite, ReserveFate, ReserveWrite, SettleFate } from "./nonce-writes.ts";

export function reserve(draft: Draft, write: ReserveWrite): NonceOutcome {
  const fate = known(draft, write.requestId) ?? keep(draft, write);
  return { status: "reserved", fate, cursor: draft.ledger.cursor ?? 0 };
}

/** What the caller's name for it stands for already. */
function known({ ledger, past }: Draft, requestId: string | null): ReserveFate | null {
  if (requestId === null) return null;
  const reservationId = ledger.reservedAs.get(requestId);
  const reservation = reservationId === null ? null : ledger.reservations.get(reservationId);
  if (reservation !== null) return { fate: "existing", reservation: reservationAt(reservation, past) };
  const owner = ledger.requests.get(requestId);
  return owner === null ? null : { fate: "requestTaken", txId: owner.txId };
}

function keep(draft: Draft, write: ReserveWrite): ReserveFate {
  const given = isHeld(draft.ledger) ? null : new Giver(draft.ledger, write).next(draft);
  if (given === null) return { fate: "noCursor" };
  const { reservationId, requestId, owner, ttlMs } = write;
  const expiresAt = new Date(draft.at.getTime() + ttlMs);
  const reservation: Reservation = {
    ...{ reservationId, lane: draft.ledger.lane, nonce: given.nonce, requestId, owner },
    ...{ state: "RESERVED", expiresAt, txId: null },
  };
  draft.record({ kind: "reserved", reservation });
  return { fate: "created", reservation, recycled: given.recycled };
}

export function release(draft: Draft, { reservationId }: ReleaseWrite): NonceOutcome {
  const { reservation, fate } = judged(draft, reservationId);
  if (fate !== "settled" || reservation === null) return { status: "released", fate, hole: null };
  return { status: "released", fate, hole: end(draft, reservation, "released") };
}

/** Ascending by nonce. */
export function expire(draft: Draft): NonceOutcome {
  const { reserved, reservations } = draft.ledger;
  const open = reserved.every().flatMap(([, reservationId]) => reservations.get(reservationId) ?? []);
  const over = open.filter(({ expiresAt }) => expiresAt <= draft.past);
  return { status: "expired", holes: over.map((reservation) => end(draft, reservation, "expired")) };
}

function end(draft: Draft, reservation: Reservation, why: "released" | "expired"): Hole {
  const { nonce, reservationId } = reservation;
  settle(draft, reservation, { state: why === "released" ? "RELEASED" : "EXPIRED", txId: null });
  const what = why === "released" ? "its reservation was released" : "its reservation expired unused";
  const hole = { nonce, why, detail: `${what} (${reservationId})`, since: draft.at, reservationId };
  draft.record({ kind: "holeLeft", hole });
  return hole;
}

export function settle(draft: Draft, reservation: Reservation, as: Pick<Reservation, "state" | "txId">): void {
  draft.record({ kind: "reservationSettled", reservation: { ...reservation, ...as }, from: reservation.state });
}

/** Whether it can still be settled. `late`: it is past, be that written down or not. */
export function judged(
  { ledger, past }: Draft,
  reservationId: string,
): { readonly reservation: Reservation | null; readonly fate: SettleFate } {
  const reservation = ledger.reservations.get(reservationId);
  if (reservation === null) return { reservation, fate: "conflict" };
  const { state } = reservationAt(reservation, past);
  if (state === "RESERVED") return { reservation, fate: "settled" };
  return { reservation, fate: state === "EXPIRED" ? "late" : "conflict" };
}
