/** Puts changes into a ledger. The only place where a ledger comes to stand differently: `apply` goes through it too. */
import type { Hole } from "../holes.ts";
import type { Reservation } from "../reservations.ts";
import type { Allocated, Change, Moved, Refused } from "./changes.ts";
import { allocatedTransaction, movedTransaction, refusedTransaction } from "./fold-transaction.ts";
import { existingOf, type Ledger, type LedgerTransaction, watchedIn } from "./ledger.ts";
import type { Part } from "./part.ts";

/** In the order in which they were committed. */
export function fold(ledger: Ledger, changes: readonly Change[]): Ledger {
  return changes.reduce(foldOne, ledger);
}

export function foldOne(ledger: Ledger, change: Change): Ledger {
  switch (change.kind) {
    case "cursor":
      return { ...ledger, cursor: change.cursor };
    case "suspension":
      return { ...ledger, suspendedBy: change.suspendedBy };
    case "reconciliation":
      return { ...ledger, reconciled: true };
    case "decision":
    case "completed":
      return ledger;
    case "allocated":
      return foldAllocated(ledger, change);
    case "moved":
      return foldMoved(ledger, change);
    case "refused":
      return foldRefused(ledger, change);
    case "aliased":
      return { ...ledger, intake: ledger.intake.delete(change.intakeId) };
    case "unwatched":
      return foldUnwatched(ledger, change);
    default:
      return foldNonces(ledger, change);
  }
}

type NonceChange = Extract<Change, { readonly kind: "holeLeft" | "holeClosed" | "reserved" | "reservationSettled" }>;

function foldNonces(ledger: Ledger, change: NonceChange): Ledger {
  switch (change.kind) {
    case "holeLeft":
      return { ...ledger, holes: withHole(ledger.holes, change.hole) };
    case "holeClosed":
      return { ...ledger, holes: ledger.holes.delete(change.nonce) };
    case "reserved":
      return foldReserved(ledger, change.reservation);
    case "reservationSettled":
      return foldReservationSettled(ledger, change.reservation);
  }
}

function withHole(holes: Part<number, Hole>, hole: Hole): Part<number, Hole> {
  return holes.add(hole.nonce, hole);
}

function foldAllocated(ledger: Ledger, change: Allocated): Ledger {
  const tx = allocatedTransaction(change);
  const { nonce, intake, intent } = change;
  return {
    ...ledger,
    cursor: past(ledger, nonce),
    transactions: ledger.transactions.add(tx.txId, tx),
    nonces: ledger.nonces.add(nonce, tx.txId),
    live: ledger.live.add(nonce, tx.txId),
    requests:
      intent.requestId === null ? ledger.requests : ledger.requests.add(intent.requestId, existingOf(ledger, tx)),
    intake: intake === null ? ledger.intake : ledger.intake.delete(intake.intakeId),
  };
}

/** What was given lies below the cursor. */
function past({ cursor }: Ledger, nonce: number): number {
  return Math.max(cursor ?? 0, nonce + 1);
}

function foldMoved(ledger: Ledger, change: Moved): Ledger {
  const before = ledger.transactions.get(change.item.txId);
  if (before === null) throw new Error(`a step of ${change.item.txId}, which does not exist`);
  const tx = movedTransaction(before, change);
  return {
    ...ledger,
    cursor: tx.nonce === null || tx.nonce === before.nonce ? ledger.cursor : past(ledger, tx.nonce),
    transactions: ledger.transactions.set(tx.txId, tx),
    nonces: tx.nonce === before.nonce ? ledger.nonces : rekeyed(ledger.nonces, before, tx.nonce),
    live: tx.nonce === before.nonce ? ledger.live : rekeyed(ledger.live, before, tx.nonce),
    watched: rewatched(ledger.watched, before, tx),
    requests: tx.state === before.state && tx.nonce === before.nonce ? ledger.requests : renamed(ledger.requests, tx),
  };
}

/** Whoever repeats its request is told of it as it stands. */
function renamed(
  requests: Ledger["requests"],
  { txId, requestId, state, nonce }: LedgerTransaction,
): Ledger["requests"] {
  const owner = requestId === null ? null : requests.atHand(requestId);
  return owner?.txId === txId && requestId !== null ? requests.set(requestId, { ...owner, state, nonce }) : requests;
}

function rekeyed(
  nonces: Part<number, string>,
  { txId, nonce }: LedgerTransaction,
  to: number | null,
): Part<number, string> {
  const left = nonce === null ? nonces : nonces.delete(nonce);
  return to === null ? left : left.add(to, txId);
}

function rewatched(watched: Ledger["watched"], before: LedgerTransaction, tx: LedgerTransaction): Ledger["watched"] {
  const from = watchedIn(before);
  const to = watchedIn(tx);
  if (from === to) return watched;
  if (from === undefined || to === undefined) return watched.unsure();
  const { txId, nonce, state } = tx;
  const left = from === null ? watched : letGo(watched, from, txId);
  return to === null || nonce === null ? left : left.set(to, [...(left.atHand(to) ?? []), { txId, nonce, state }]);
}

function letGo(watched: Ledger["watched"], block: number, txId: string): Ledger["watched"] {
  const others = (watched.atHand(block) ?? []).filter((each) => each.txId !== txId);
  return others.length === 0 ? watched.delete(block) : watched.set(block, others);
}

/** Nobody had its request id so far, as far as can be told here: then it is its own. The database decides. */
function foldRefused(ledger: Ledger, change: Refused): Ledger {
  const tx = refusedTransaction(change);
  const { requests, intake } = ledger;
  const { requestId } = tx;
  const isOwn = change.fate.event === "refuse" && requestId !== null && requests.atHand(requestId) === null;
  return {
    ...ledger,
    transactions: ledger.transactions.add(tx.txId, tx),
    requests: isOwn ? requests.add(requestId, existingOf(ledger, tx)) : requests,
    intake: intake.delete(change.intake.intakeId),
  };
}

function foldUnwatched(ledger: Ledger, { txId, nonce, block }: Extract<Change, { kind: "unwatched" }>): Ledger {
  const { transactions } = ledger;
  const before = transactions.atHand(txId);
  return {
    ...ledger,
    transactions: before ? transactions.retire(txId, { ...before, live: false }) : transactions,
    nonces: ledger.nonces.retire(nonce, txId),
    live: ledger.live.delete(nonce),
    watched: letGo(ledger.watched, block, txId),
  };
}

function foldReserved(ledger: Ledger, reservation: Reservation): Ledger {
  const { reservationId, nonce, requestId } = reservation;
  return {
    ...ledger,
    cursor: past(ledger, nonce),
    reservations: ledger.reservations.add(reservationId, reservation),
    reserved: ledger.reserved.add(nonce, reservationId),
    reservedAs: requestId === null ? ledger.reservedAs : ledger.reservedAs.add(requestId, reservationId),
  };
}

function foldReservationSettled(ledger: Ledger, reservation: Reservation): Ledger {
  const { reservationId, nonce, state } = reservation;
  const { endedThrough, reserved } = ledger;
  const isFree = state === "RELEASED" || endedThrough === undefined;
  return {
    ...ledger,
    endedThrough: isFree ? endedThrough : Math.max(endedThrough ?? 0, nonce),
    reservations: ledger.reservations.set(reservationId, reservation),
    // An expired one may be settled once more, when its hole is closed: then somebody else may stand at its nonce.
    reserved: reserved.atHand(nonce) === reservationId ? reserved.delete(nonce) : reserved,
  };
}
