/** Settles intents of the intake table that get no nonce. What is settled already is passed over: an owner may repeat it. */
import { tooLate } from "../errors.ts";
import { isAnothers } from "../keys/principal.ts";
import { problemFrom } from "../text/refusal.ts";
import { isOver } from "./allocate.ts";
import type { EndedResult, Refused } from "./changes.ts";
import type { Draft } from "./draft.ts";
import { type Approval, isSpent, type WaitingIntent } from "./ledger.ts";
import type { ApprovalResult, IntakeResult, LedgerOutcome, SettleIntakeWrite } from "./writes.ts";

export function settleIntake(draft: Draft, { results }: SettleIntakeWrite): LedgerOutcome {
  for (const result of results) {
    const intake = draft.ledger.intake.get(result.intakeId);
    if (intake === null) continue;
    if (result.result === "refused") refuseOrDecline(draft, intake, result);
    else if (result.result === "decided") decide(draft, intake, result);
    else draft.record({ kind: "aliased", intakeId: result.intakeId, of: result.of });
  }
  return { status: "done" };
}

/** Judged behind the row's lock: its sender may have stopped waiting a moment ago, and have answered its caller. */
function refuseOrDecline(draft: Draft, intake: WaitingIntent, result: Extract<IntakeResult, { result: "refused" }>) {
  const { problem } = result;
  if (intake.unanswered && problem !== undefined) draft.record({ kind: "declined", intake, problem });
  else if (result.ifUnanswered !== true) refuse(draft, intake, result);
}

/**
 * The first decision counts. One that comes too late finds it expired. Once approved it may wait long for its nonce,
 * and can be cancelled until it has one.
 */
function decide(draft: Draft, intake: WaitingIntent, result: ApprovalResult) {
  const order = result.decision?.order;
  if (draft.isCarriedOut(order)) return;
  if (result.event === "hold" || result.event === "unhold") {
    // Twice is the same as once.
    const isNew = (intake.held === true) !== (result.event === "hold");
    if (isNew) draft.record({ kind: "held", intake, result, at: draft.at });
    draft.keepOrderKey(order);
    return;
  }
  const { approval, held = false } = intake;
  const late = held ? null : lateEnd(intake, draft.at);
  if (late !== null) {
    end(draft, intake, result.event === "expire" ? { ...result, event: result.event } : late);
    return;
  }
  // Held back, nothing happens to it by itself: not even its end.
  if (result.event === "expire") return;
  if (result.event === "callOff" ? approval === null && !held : approval?.approved !== false) return;
  draft.keepOrderKey(order);
  if (result.event === "approve") draft.record({ kind: "approved", intake, result, at: draft.at });
  else end(draft, intake, { ...result, event: result.event });
}

/** How it ends by itself at this moment; null: not yet. */
function lateEnd(intake: WaitingIntent, at: Date): EndedResult | null {
  const { approval, validUntil } = intake;
  if (validUntil !== undefined && validUntil <= at) return lapsed(intake, validUntil);
  return approval?.approved === false && approval.expiresAt <= at ? expired(intake, approval) : null;
}

/**
 * A node whose policies require no approval does not look for waiting intents: after a repeat of the request it has
 * given that a nonce. A reader of completions by request id must not see then that the request has failed.
 */
function end(draft: Draft, intake: WaitingIntent, result: EndedResult) {
  const { intakeId, txId, requestId, owner, fingerprint } = intake;
  const other = requestId === null ? null : draft.ledger.requests.get(requestId);
  const isSame =
    other !== null && !isSpent(other) && other.fingerprint === fingerprint && !isAnothers(other.owner, owner);
  if (isSame && other.txId !== txId) draft.record({ kind: "aliased", intakeId, of: other.txId });
  // The sender has not answered its caller yet, and gets the lane owner's own refusal.
  else if (intake.unanswered && isOver(intake.validUntil, draft.at))
    draft.record({ kind: "declined", intake, problem: problemFrom(tooLate()) });
  else refuse(draft, intake, result);
}

type Waiting = Pick<WaitingIntent, "intakeId" | "requestId">;

export function expired(waiting: Waiting, { rule, expiresAt }: Pick<Approval, "rule" | "expiresAt">): EndedResult {
  return ended(waiting, `nobody approved it before ${expiresAt.toISOString()} (${rule})`);
}

/** End of an intent that has no nonce at `validUntil`, by which its caller wanted it mined. */
export function lapsed(waiting: Waiting, validUntil: Date): EndedResult {
  return ended(waiting, `it had no nonce when its validUntil, ${validUntil.toISOString()}, was over`);
}

function ended({ intakeId, requestId }: Waiting, reason: string): EndedResult {
  return { intakeId, requestId, result: "decided", event: "expire", reason, decision: null };
}

function refuse(draft: Draft, intake: WaitingIntent, result: Refused["result"]) {
  const { at } = draft;
  draft.record({ kind: "refused", intake, result, at });
  const { txId, requestId } = intake;
  const subState = draft.ledger.transactions.get(txId)?.subState ?? null;
  const outcome = { state: "FAILED_FINAL", subState, settled: true, txHash: null } as const;
  draft.record({ kind: "completed", completion: { ...outcome, txId, requestId, nonce: null }, at });
}
