/**
 * Messages under policy. A message is allowed, counted and kept in one commit under the lane's lock, before a key signs
 * it. So two nodes cannot exceed a limit together, and whatever was signed is on record.
 */
import { isAnothers } from "../keys/principal.ts";
import type { SignatureRecord } from "../messages/record.ts";
import {
  type AllowedMessage,
  beyondWindows,
  countedOnce,
  judgeMessage,
  type MessageApproval,
  type MessageContext,
  messageApproval,
  UNUSED_RULE,
} from "../policy/message-rules.ts";
import { type Forbidden, outsideOf, policyFor, type Scope } from "../policy/policy.ts";
import type { Draft } from "./draft.ts";
import { UNREADABLE } from "./guard.ts";
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
  const full = beyond(draft, judged.allowed);
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
  if (approval === null) count(draft, allowed);
  return { result: "kept", record, isNew: true };
}

/**
 * A repeat gets what was committed. An allowed message that is not signed yet is judged again, without being counted:
 * its rule may have been removed meanwhile.
 */
function repeated(draft: Draft, known: SignatureRecord, asked: SignMessageWrite["asked"]): MessageResult {
  const another = isAnothers(known.owner, asked.owner);
  if (another || known.digest !== asked.digest) return { result: "reused", another };
  const isLate = known.state === "AWAITING_APPROVAL" && isOver(draft, known);
  if (isLate) return kept(change(draft, known, { state: "EXPIRED" }));
  if (known.state === "ALLOWED") {
    if (isHeld(draft.ledger)) return { result: "held" };
    const judged = judge(draft, known);
    if ("rule" in judged) return { result: "forbidden", ...judged };
  }
  return kept(known);
}

function settledBy(draft: Draft, { requestId, event }: SettleMessageWrite): MessageResult {
  const known = draft.ledger.messages.get(requestId);
  if (known === null || isSpent(known)) return { result: "conflict", record: null };
  if (event.kind === "sign") {
    // Of two signatures that were made at once, the first to be stored is the answer to both.
    if (known.state === "SIGNED") return kept(known);
    if (known.state !== "ALLOWED") return { result: "conflict", record: known };
    return kept(change(draft, known, { state: "SIGNED", signature: event.signature, signedAt: draft.at }));
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
  const full = beyond(draft, judged.allowed);
  if (full !== null) return { result: "forbidden", ...full };
  count(draft, judged.allowed);
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

interface Judged {
  readonly allowed: AllowedMessage;
  readonly approval: MessageApproval | null;
}

/** The rule of the signer's policy that allows the message; a key's policy may forbid it or ask for approval, too. */
function judge(
  { ledger, at }: Draft,
  { message, owner }: Pick<SignatureRecord, "message" | "owner">,
): Judged | Forbidden {
  const { guard, lane } = ledger;
  if (guard !== null && guard.policies.unreadable.length > 0) return UNREADABLE;
  const context: MessageContext = { ...lane, at };
  const ofSigner = guard === null ? null : policyFor(guard.policies.signers, lane.signer);
  const ofKey = guard === null ? null : policyFor(guard.policies.keys, owner);
  for (const [scope, policy] of [["signer", ofSigner] as const, ["key", ofKey] as const]) {
    const outside = policy === null ? null : outsideOf({ scope, policy }, lane.chainId, at);
    if (outside !== null) return scoped(scope, outside);
  }
  const allowed = judgeMessage(ofSigner?.messages ?? null, message, context);
  if ("refused" in allowed) return scoped("signer", allowed.refused);
  const byKey = ofKey === null || ofKey.messages === null ? null : judgeMessage(ofKey.messages, message, context);
  if (byKey !== null && "refused" in byKey) return scoped("key", byKey.refused);
  const asking = [allowed, ...(byKey === null ? [] : [byKey])].flatMap((each) => messageApproval(each) ?? []);
  const shortest = asking.sort((a, b) => a.expiresAfterMs - b.expiresAfterMs)[0] ?? null;
  return { allowed, approval: shortest };
}

function scoped(scope: Scope, { rule, detail }: Forbidden): Forbidden {
  return { rule: `${scope}.${rule}`, detail };
}

function beyond({ ledger, at }: Draft, allowed: AllowedMessage): Forbidden | null {
  const broken = beyondWindows(allowed, ledger.messageUse.get(allowed.rule.name) ?? UNUSED_RULE, at);
  return broken === null ? null : scoped("signer", broken);
}

function count(draft: Draft, { rule, amount }: AllowedMessage) {
  const before = draft.ledger.messageUse.get(rule.name) ?? UNUSED_RULE;
  draft.record({ kind: "messageCounted", rule: rule.name, use: countedOnce(before, amount, draft.at) });
}
