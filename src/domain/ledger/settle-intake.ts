/**
 * Ends intents of the intake table (intents without a nonce) that will get none, and applies decisions about waiting
 * ones. Intents that have already ended are skipped, because an owner may repeat this write.
 */
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

/**
 * Refuses an intent. If its sender still waits for the result, the refusal is returned to the sender and nothing is
 * stored. Decided under the row's lock, because the sender may just have stopped waiting and reported the intent as
 * accepted.
 */
function refuseOrDecline(draft: Draft, intake: WaitingIntent, result: Extract<IntakeResult, { result: "refused" }>) {
  const { problem } = result;
  if (intake.unanswered && problem !== undefined) draft.record({ kind: "declined", intake, problem });
  else if (result.ifUnanswered !== true) refuse(draft, intake, result);
}

/**
 * Applies a decision about a waiting intent. The first decision counts. A hold or its release applies at any time.
 * After the deadline every other decision makes the intent expire, unless it is on hold. An approved intent may wait
 * long for its nonce, and can be cancelled until it has one.
 */
function decide(draft: Draft, intake: WaitingIntent, result: ApprovalResult) {
  const actionKey = result.decision?.actionKey;
  if (draft.isCarriedOut(actionKey)) return;
  if (result.event === "hold" || result.event === "unhold") {
    // An intent that is already on hold or already released does not change again.
    const isNew = (intake.held === true) !== (result.event === "hold");
    if (isNew) draft.record({ kind: "held", intake, result, at: draft.at });
    draft.keepActionKey(actionKey);
    return;
  }
  const { approval, held = false } = intake;
  const late = held ? null : lateEnd(intake, draft.at);
  if (late !== null) {
    end(draft, intake, result.event === "expire" ? { ...result, event: result.event } : late);
    return;
  }
  // An intent on hold does not expire.
  if (result.event === "expire") return;
  if (result.event === "callOff" ? approval === null && !held : approval?.approved !== false) return;
  draft.keepActionKey(actionKey);
  if (result.event === "approve") draft.record({ kind: "approved", intake, result, at: draft.at });
  else end(draft, intake, { ...result, event: result.event });
}

/** Returns how the intent ends if its deadline has passed; null if it does not end yet. */
function lateEnd(intake: WaitingIntent, at: Date): EndedResult | null {
  const { approval, validUntil } = intake;
  if (validUntil !== undefined && validUntil <= at) return lapsed(intake, validUntil);
  return approval?.approved === false && approval.expiresAt <= at ? expired(intake, approval) : null;
}

/**
 * Ends a waiting intent. A node whose policies require no approval does not check for waiting intents, so it may
 * already have given a repeat of this request a nonce. In that case, the feed must not report the request id as failed.
 */
function end(draft: Draft, intake: WaitingIntent, result: EndedResult) {
  const { intakeId, txId, requestId, owner, fingerprint } = intake;
  const other = requestId === null ? null : draft.ledger.requests.get(requestId);
  const isSame =
    other !== null && !isSpent(other) && other.fingerprint === fingerprint && !isAnothers(other.owner, owner);
  if (isSame && other.txId !== txId) draft.record({ kind: "aliased", intakeId, of: other.txId });
  // The sender still waits and has not yet responded to its caller, so the refusal is returned to the sender.
  else if (intake.unanswered && isOver(intake.validUntil, draft.at))
    draft.record({ kind: "declined", intake, problem: problemFrom(tooLate()) });
  else refuse(draft, intake, result);
}

type Waiting = Pick<WaitingIntent, "intakeId" | "requestId">;

export function expired(waiting: Waiting, { rule, expiresAt }: Pick<Approval, "rule" | "expiresAt">): EndedResult {
  return ended(waiting, `nobody approved it before ${expiresAt.toISOString()} (${rule})`);
}

/**
 * Result for an intent that still has no nonce when its `validUntil` passes. `validUntil` is the time by which its
 * caller wanted it mined.
 */
export function lapsed(waiting: Waiting, validUntil: Date): EndedResult {
  return ended(waiting, `it had no nonce when its validUntil, ${validUntil.toISOString()}, was over`);
}

function ended({ intakeId, requestId }: Waiting, reason: string): EndedResult {
  return { intakeId, requestId, result: "decided", event: "expire", reason, decision: null };
}

function refuse(draft: Draft, intake: WaitingIntent, result: Refused["result"]) {
  const { at } = draft;
  draft.record({ kind: "refused", intake, result, at });
  const { txId, requestId, owner } = intake;
  const subState = draft.ledger.transactions.get(txId)?.subState ?? null;
  const outcome = { state: "FAILED_FINAL", subState, settled: true, txHash: null } as const;
  draft.record({ kind: "completed", completion: { ...outcome, txId, requestId, nonce: null }, owner, at });
}
