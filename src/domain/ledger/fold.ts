/** Applies changes to a ledger. This is the only place where a ledger changes: `apply` uses it too. */
import type { Reservation } from "../transaction/reservations.ts";
import { TRANSITIONS } from "../transaction/transitions.ts";
import type { Allocated, Change, Moved, Refused } from "./changes.ts";
import { allocatedTransaction, awaitingTransaction, movedTransaction, refusedTransaction } from "./fold-transaction.ts";
import { foldCharge } from "./guard.ts";
import { foldStanding, type Own } from "./kept.ts";
import {
  type Approval,
  actionKeyOf,
  existingOf,
  isSpent,
  type Ledger,
  type LedgerTransaction,
  type WaitingIntent,
  watchedIn,
} from "./ledger.ts";
import { refixed } from "./may-move.ts";
import type { Part } from "./part.ts";
import type { ExistingTransaction, RequestOwner } from "./writes.ts";

/** A new ledger that no other code refers to yet, so it may be changed in place. */
export type OwnLedger = Own<Ledger>;

/**
 * Applies a change to the ledger in place. Copies would be wasteful: a write of a hundred items would create a hundred
 * ledgers and throw them away.
 */
export function foldInto(ledger: OwnLedger, change: Change): void {
  foldStanding(ledger, change);
  switch (change.kind) {
    case "allocated":
      foldAllocated(ledger, change);
      break;
    case "moved":
      foldMoved(ledger, change);
      break;
    case "refused":
      foldRefused(ledger, change);
      break;
    case "awaits":
      foldBegun(ledger, awaitingTransaction(change));
      if (change.intake !== null) foldApproval(ledger, change.intake, change.approval);
      break;
    case "approved":
      foldApproved(ledger, change.intake);
      break;
    case "held":
      foldHeld(ledger, change);
      break;
    case "declined":
      ledger.intake = ledger.intake.delete(change.intake.intakeId);
      break;
    case "aliased":
      ledger.intake = ledger.intake.delete(change.intakeId);
      break;
    case "unwatched":
      foldUnwatched(ledger, change);
      break;
    case "reserved":
      foldReserved(ledger, change.reservation);
      break;
    case "reservationSettled":
      foldReservationSettled(ledger, change.reservation);
      break;
    case "repaired":
      if (ledger.repairs !== undefined) ledger.repairs = [...ledger.repairs, change.at];
      break;
    case "carriedOut":
      ledger.actionKeys = ledger.actionKeys.add(actionKeyOf(change.actionKey), change.actionKey.fingerprint);
      break;
    case "messageKept":
      ledger.messages = ledger.messages.add(change.record.requestId, change.record);
      break;
    case "messageChanged":
      ledger.messages = ledger.messages.set(change.record.requestId, change.record);
      break;
    case "messageCounted":
      ledger.messageUse = ledger.messageUse.set(change.rule, change.use);
      break;
    case "charged":
      if (ledger.guard !== null) ledger.guard = foldCharge(ledger.guard, ledger.lane.signer, change);
      break;
  }
}

function foldAllocated(ledger: OwnLedger, change: Allocated) {
  const tx = allocatedTransaction(change);
  const { nonce, intake } = change;
  if (intake !== null) forgetWaiting(ledger, intake);
  foldBegun(ledger, tx);
  ledger.nonces = ledger.nonces.add(nonce, tx.txId);
  ledger.live = ledger.live.add(nonce, tx.txId);
  ledger.fixed = refixed(ledger.fixed, null, tx);
}

function foldBegun(ledger: OwnLedger, tx: LedgerTransaction, ownsRequest = true) {
  const { txId, requestId } = tx;
  ledger.transactions = ledger.transactions.add(txId, tx);
  if (requestId !== null && ownsRequest) ledger.requests = ledger.requests.add(requestId, existingOf(ledger, tx));
}

/** Removes an intent from the intake table: it became a transaction or was refused. */
function forgetWaiting(ledger: OwnLedger, { intakeId, txId, requestId, approval }: WaitingIntent) {
  ledger.intake = ledger.intake.delete(intakeId);
  if (approval === null) return;
  ledger.transactions = ledger.transactions.delete(txId);
  const owner = requestId === null ? null : ledger.requests.atHand(requestId);
  if (requestId !== null && isOf(owner, txId)) ledger.requests = ledger.requests.delete(requestId);
}

function foldApproval(ledger: OwnLedger, intake: WaitingIntent, approval: Approval) {
  ledger.intake = ledger.intake.set(intake.intakeId, { ...intake, approval, unanswered: false });
}

function foldApproved(ledger: OwnLedger, intake: WaitingIntent) {
  const { txId, approval } = intake;
  if (approval !== null) foldApproval(ledger, intake, { ...approval, approved: true });
  const before = ledger.transactions.atHand(txId);
  if (!before) return;
  const tx = { ...before, ...TRANSITIONS.approve.to, lastEvent: "approve" as const, steps: before.steps + 1 };
  ledger.transactions = ledger.transactions.set(txId, tx);
}

function foldHeld(ledger: OwnLedger, { intake, result }: Extract<Change, { kind: "held" }>) {
  const { held: _, ...rest } = { ...intake, holds: (intake.holds ?? 0) + 1 };
  ledger.intake = ledger.intake.set(intake.intakeId, result.event === "hold" ? { ...rest, held: true } : rest);
}

function foldMoved(ledger: OwnLedger, change: Moved) {
  const before = ledger.transactions.get(change.item.txId);
  if (before === null) throw new Error(`cannot change transaction ${change.item.txId}: it does not exist`);
  const tx = movedTransaction(before, change);
  ledger.transactions = ledger.transactions.set(tx.txId, tx);
  if (tx.nonce !== before.nonce) {
    ledger.nonces = rekeyed(ledger.nonces, before, tx.nonce);
    ledger.live = rekeyed(ledger.live, before, tx.nonce);
  }
  ledger.fixed = refixed(ledger.fixed, before, tx);
  ledger.watched = rewatched(ledger.watched, before, tx);
  if (tx.state !== before.state || tx.nonce !== before.nonce) ledger.requests = renamed(ledger.requests, tx);
}

/**
 * Updates the state that is stored with a request id after its transaction changed. A repeated request gets this state
 * as its response.
 */
function renamed(
  requests: Ledger["requests"],
  { txId, requestId, state, nonce }: LedgerTransaction,
): Ledger["requests"] {
  const owner = requestId === null ? null : requests.atHand(requestId);
  return isOf(owner, txId) && requestId !== null ? requests.set(requestId, { ...owner, state, nonce }) : requests;
}

function isOf(owner: RequestOwner | null | undefined, txId: string): owner is ExistingTransaction {
  return owner !== null && owner !== undefined && !isSpent(owner) && owner.txId === txId;
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
  const all = watched.atHand(block);
  // Not loaded: it must not count as known to be empty.
  if (!all) return watched;
  const others = all.filter((each) => each.txId !== txId);
  return others.length === 0 ? watched.delete(block) : watched.set(block, others);
}

/**
 * A refused intent owns its request id if no other loaded transaction owns the id. The database makes the final
 * decision.
 */
function foldRefused(ledger: OwnLedger, change: Refused) {
  const tx = refusedTransaction(change);
  forgetWaiting(ledger, change.intake);
  const isFree = tx.requestId !== null && ledger.requests.atHand(tx.requestId) === null;
  foldBegun(ledger, tx, isFree && change.result.event !== "refuseReusedRequestId");
}

function foldUnwatched(ledger: OwnLedger, { txId, nonce, block }: Extract<Change, { kind: "unwatched" }>) {
  const { transactions } = ledger;
  const before = transactions.atHand(txId);
  if (before) ledger.transactions = transactions.retire(txId, { ...before, live: false });
  ledger.nonces = ledger.nonces.retire(nonce, txId);
  ledger.live = ledger.live.delete(nonce);
  if (ledger.fixed.cover.kind !== "named") ledger.fixed = ledger.fixed.delete(nonce);
  ledger.watched = letGo(ledger.watched, block, txId);
}

function foldReserved(ledger: OwnLedger, reservation: Reservation) {
  const { reservationId, requestId } = reservation;
  ledger.reservations = ledger.reservations.add(reservationId, reservation);
  if (requestId !== null) ledger.reservedAs = ledger.reservedAs.add(requestId, reservationId);
}

function foldReservationSettled(ledger: OwnLedger, reservation: Reservation) {
  const { reservationId, nonce, state } = reservation;
  const { endedThrough } = ledger;
  if (state !== "RELEASED" && endedThrough !== undefined) ledger.endedThrough = Math.max(endedThrough ?? 0, nonce);
  ledger.reservations = ledger.reservations.set(reservationId, reservation);
}
