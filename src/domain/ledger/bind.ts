/**
 * Gives a transaction a reserved nonce, a nonce gap (also one that an expired reservation left), or the nonce that its
 * caller chose. The transaction is allocated and signed within one write, so that no reader sees it allocated but
 * unsigned.
 */
import { hourOf } from "../policy/use.ts";
import { nextNonce } from "./allocate.ts";
import type { Charged } from "./changes.ts";
import type { Draft } from "./draft.ts";
import { judgeFirst, unapproved, type Verdict } from "./guard.ts";
import { givesNoNonce } from "./ledger.ts";
import { move } from "./move.ts";
import { loaded } from "./part.ts";
import { settle, usable } from "./reserve.ts";
import type { BindWrite, NonceOutcome, SettleResult, TransitionItem } from "./writes.ts";

export function bind(draft: Draft, write: BindWrite): NonceOutcome {
  const { intent } = write;
  const isTaken = intent.requestId !== null && draft.ledger.requests.get(intent.requestId) !== null;
  const requestId = isTaken ? null : intent.requestId;
  const verdict = judgeBound(draft, write);
  const at = { createdAt: draft.at, requestId };
  if (draft.isCarriedOut(write.decision?.actionKey)) return { status: "bound", result: "conflict", ...at };
  if ("forbidden" in verdict) return { status: "bound", result: "forbidden", ...at, forbidden: verdict.forbidden };
  const result = givesNoNonce(draft.ledger) ? "held" : takeNonce(draft, write);
  const { chosen } = write;
  if (result === "conflict" && chosen !== undefined) {
    return { status: "bound", result, ...at, next: nextNonce(draft.ledger, chosen.floor) };
  }
  if (result === "settled") insertSigned(draft, write, { requestId, charges: verdict.charges });
  return { status: "bound", result, ...at };
}

/**
 * Checks the nonce and uses it. It must belong to a reservation that the caller may still use, be a nonce gap, or be a
 * nonce that the caller may choose.
 */
function takeNonce(draft: Draft, write: BindWrite): SettleResult {
  const { reservation, nonce, intent, chosen } = write;
  if (chosen !== undefined) return takeChosen(draft, write, chosen.floor);
  if (reservation === undefined || reservation.becomes === "EXPIRED") return fillHole(draft, write);
  const found = usable(draft, reservation.reservationId);
  if (found?.nonce !== nonce) return "conflict";
  if (found.state === "EXPIRED") draft.record({ kind: "holeClosed", nonce });
  settle(draft, found, { state: reservation.becomes, txId: intent.txId });
  return "settled";
}

/**
 * Checks under the lane's lock that the nonce chosen by the caller may be used: either it is reserved for the same API
 * key, or it is not reserved and still the lane's next nonce.
 */
function takeChosen(draft: Draft, { nonce, intent }: BindWrite, floor: number | null): SettleResult {
  const { reserved, reservations } = draft.ledger;
  const reservationId = reserved.get(nonce);
  if (reservationId === null) return nonce === nextNonce(draft.ledger, floor) ? "settled" : "conflict";
  const reservation = reservations.get(reservationId);
  if (reservation === null || reservation.owner !== intent.owner) return "conflict";
  settle(draft, reservation, { state: "SUBMITTED", txId: intent.txId });
  return "settled";
}

function fillHole(draft: Draft, { reservation, nonce, intent: { txId } }: BindWrite): SettleResult {
  const { ledger, at } = draft;
  if (ledger.holes.get(nonce) === null) return "conflict";
  const mostPerHour = reservation?.becomes === "EXPIRED" ? reservation.mostPerHour : undefined;
  if (mostPerHour !== undefined && repairsInHour(draft) >= mostPerHour) return "limited";
  draft.record({ kind: "holeClosed", nonce });
  const left = reservation === undefined ? null : ledger.reservations.get(reservation.reservationId);
  if (left?.state === "EXPIRED" && left.nonce === nonce) settle(draft, left, { state: "EXPIRED", txId });
  if (mostPerHour !== undefined) draft.record({ kind: "repaired", txId, at });
  return "settled";
}

/**
 * Number of placeholders that the lane put automatically at nonces of expired reservations in the current hour. Hours
 * are whole hours in UTC, by the database's clock, so that successive owners of the lane count in the same hour.
 */
function repairsInHour({ ledger, at }: Draft) {
  const repairs = loaded(ledger.repairs, "the repairs of this hour");
  return repairs.filter((each) => hourOf(each.getTime()) === hourOf(at.getTime())).length;
}

function insertSigned(
  draft: Draft,
  write: BindWrite,
  { requestId, charges }: { requestId: string | null; charges: readonly Charged[] },
) {
  const { intent, nonce } = write;
  draft.record({ kind: "allocated", intent: { ...intent, requestId }, nonce, intake: null, at: draft.at });
  for (const charge of charges) draft.record(charge);
  move(draft, signingOf(write));
}

/**
 * Result of the policy check for a transaction at a reserved nonce or in a nonce gap. Two kinds are not checked for
 * their payload: a transaction that its caller has already sent itself, and a placeholder, which transfers nothing.
 */
function judgeBound(draft: Draft, { intent, attempt: { kind } }: BindWrite): Verdict {
  const about = kind === "initial" ? "payload" : kind === "placeholder" ? kind : "cost";
  return unapproved(judgeFirst(draft, intent, { about }));
}

export type Signing = Pick<BindWrite, "intent" | "attempt" | "reason" | "decision">;

/**
 * Makes the step that signs the transaction. The step also claims the right to send it, unless only the hash of the
 * attempt is known: without bytes it is never sent.
 */
export function signingOf({ intent, attempt, reason, decision }: Signing): TransitionItem {
  return {
    txId: intent.txId,
    event: "sign",
    from: "ALLOCATED",
    to: "TRACKING",
    subState: "PENDING",
    reason,
    attempt,
    ...(attempt.rawTransaction === null ? {} : { claim: { ordinal: attempt.ordinal } }),
    ...(decision === undefined ? {} : { decision }),
  };
}
