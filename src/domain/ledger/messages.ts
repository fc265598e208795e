/**
 * Messages under policy. A message is allowed, counted and kept in one commit under the lane's lock, before a key signs
 * it. So two nodes cannot exceed a limit together, and whatever was signed is on record.
 */
import { isAnothers } from "../keys/principal.ts";
import type { SignatureRecord } from "../messages/record.ts";
import {
  type AllowedMessage,
  countedAlso,
  type MessageUse,
  type Signed,
  UNUSED_RULE,
  wholeOf,
} from "../policy/message-rules.ts";
import type { Forbidden } from "../policy/policy.ts";
import type { Draft } from "./draft.ts";
import { fullWindow, type JudgedMessage, judgeAsked } from "./judge-message.ts";
import { isHeld, isSpent } from "./ledger.ts";
import type { MessageResult, SettleMessageWrite, SignMessageWrite } from "./message-writes.ts";
import type { LedgerOutcome } from "./writes.ts";

export function signMessage(draft: Draft, { asked }: SignMessageWrite): LedgerOutcome {
  return { status: "message", ...resultOf(draft, asked) };
}

export function settleMessage(draft: Draft, write: SettleMessageWrite): LedgerOutcome {
  return { status: "message", ...settledBy(draft, write) };
}

function resultOf(draft: Draft, asked: SignMessageWrite["asked"]): MessageResult {
  const known = draft.ledger.messages.get(asked.requestId);
  if (isSpent(known)) return { result: "spent" };
  if (known !== null) return repeated(draft, known, asked);
  if (isHeld(draft.ledger)) return { result: "held" };
  const judged = judge(draft, asked);
  if ("rule" in judged) return { result: "forbidden", ...judged };
  const full = beyond(draft, judged.allowed, wholeOf(judged.allowed));
  if (full !== null) return { result: "forbidden", ...full };
  const { allowed, approval } = judged;
  const { lane } = draft.ledger;
  const record: SignatureRecord = {
    ...{ ...asked, lane, rule: allowed.rule.name, amount: allowed.amount, createdAt: draft.at },
    ...{ signature: null, signedAt: null, decision: null },
    state: approval === null ? "ALLOWED" : "AWAITING_APPROVAL",
    expiresAt: approval === null ? null : new Date(draft.at.getTime() + approval.expiresAfterMs),
  };
  draft.record({ kind: "messageKept", record });
  if (approval === null) count(draft, allowed, wholeOf(allowed));
  return { result: "kept", record, isNew: true };
}

/** A repeat gets what was committed. */
function repeated(draft: Draft, known: SignatureRecord, asked: SignMessageWrite["asked"]): MessageResult {
  const another = isAnothers(known.owner, asked.owner);
  if (another || known.digest !== asked.digest) return { result: "reused", another };
  const isLate = known.state === "AWAITING_APPROVAL" && isOver(draft, known);
  if (isLate) return kept(change(draft, known, { state: "EXPIRED" }));
  if (known.state !== "ALLOWED") return kept(known);
  if (isHeld(draft.ledger)) return { result: "held" };
  const again = judgedAgain(draft, known);
  return "state" in again ? kept(again) : { result: "forbidden", ...again };
}

/**
 * Judges an allowed message by the policy in force now: before its key holder is asked, and again before its signature
 * is stored, because the policy may change at any time. A refused one stays ALLOWED, so that a repeat is signed, and not
 * counted again, if a later policy allows it. It cannot wait for approval, because it is counted already.
 */
function judgedAgain(draft: Draft, known: SignatureRecord): SignatureRecord | Forbidden {
  const judged = judge(draft, known);
  if ("rule" in judged) return judged;
  const { allowed, approval } = judged;
  if (approval !== null && known.decision === null) {
    const { rule, detail } = approval;
    return { rule, detail: `${detail}; it was allowed without, so it can no longer wait: use another request id` };
  }
  const more = uncounted(known, allowed);
  if (more.amount === 0n && more.signatures === 0) return known;
  const full = beyond(draft, allowed, more);
  if (full !== null) return full;
  count(draft, allowed, more);
  return change(draft, known, { rule: allowed.rule.name, amount: allowed.amount });
}

/** Part of an allowed message that its present rule has not counted: all of it, if another rule allowed it before. */
function uncounted(known: SignatureRecord, { rule, amount }: AllowedMessage): Signed {
  if (known.rule !== rule.name) return { amount, signatures: 1 };
  return { amount: amount > known.amount ? amount - known.amount : 0n, signatures: 0 };
}

function settledBy(draft: Draft, { requestId, event }: SettleMessageWrite): MessageResult {
  const known = draft.ledger.messages.get(requestId);
  if (known === null || isSpent(known)) return { result: "conflict", record: null };
  if (event.kind === "sign") {
    // Of two signatures that were made at once, the first to be stored is the answer to both.
    if (known.state === "SIGNED") return kept(known);
    if (known.state !== "ALLOWED") return { result: "conflict", record: known };
    if (isHeld(draft.ledger)) return { result: "held" };
    const again = judgedAgain(draft, known);
    if (!("state" in again)) return { result: "forbidden", ...again };
    return kept(change(draft, again, { state: "SIGNED", signature: event.signature, signedAt: draft.at }));
  }
  if (known.state !== "AWAITING_APPROVAL") return { result: "conflict", record: known };
  if (isOver(draft, known)) return { result: "conflict", record: change(draft, known, { state: "EXPIRED" }) };
  const decision = { actor: event.actor, reason: event.reason, at: draft.at };
  if (event.kind === "reject") return kept(change(draft, known, { state: "REJECTED", decision }));
  return approve(draft, known, decision);
}

/** An approved message is judged again, and counted in the hour of its approval. */
function approve(draft: Draft, known: SignatureRecord, decision: SignatureRecord["decision"]): MessageResult {
  if (isHeld(draft.ledger)) return { result: "held" };
  const judged = judge(draft, known);
  if ("rule" in judged) return { result: "forbidden", ...judged };
  const full = beyond(draft, judged.allowed, wholeOf(judged.allowed));
  if (full !== null) return { result: "forbidden", ...full };
  count(draft, judged.allowed, wholeOf(judged.allowed));
  const { rule, amount } = judged.allowed;
  return kept(change(draft, known, { state: "ALLOWED", decision, rule: rule.name, amount }));
}

function kept(record: SignatureRecord): MessageResult {
  return { result: "kept", record, isNew: false };
}

function change(draft: Draft, known: SignatureRecord, to: Partial<SignatureRecord>): SignatureRecord {
  const record = { ...known, ...to };
  draft.record({ kind: "messageChanged", record, from: known.state });
  return record;
}

function isOver({ at }: Draft, { expiresAt }: SignatureRecord) {
  return expiresAt !== null && expiresAt <= at;
}

type Judging = Pick<Draft, "ledger" | "at">;

function judge({ ledger, at }: Judging, asked: Pick<SignatureRecord, "message" | "owner">): JudgedMessage | Forbidden {
  const { guard, lane } = ledger;
  return judgeAsked(guard === null ? null : guard.policies, { ...asked, lane, at });
}

function useOf({ ledger }: Judging, { rule }: AllowedMessage): MessageUse {
  return ledger.messageUse.get(rule.name) ?? UNUSED_RULE;
}

function beyond(draft: Judging, allowed: AllowedMessage, more: Signed): Forbidden | null {
  return fullWindow(allowed, useOf(draft, allowed), { more, at: draft.at });
}

function count(draft: Draft, allowed: AllowedMessage, more: Signed) {
  const use = countedAlso(useOf(draft, allowed), more, draft.at);
  draft.record({ kind: "messageCounted", rule: allowed.rule.name, use });
}
