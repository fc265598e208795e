/**
 * Judges a message by the policies of its signer and of the API key that asks. The commit that keeps a message and the
 * dry run judge it by the same functions.
 */
import type { SignatureRecord } from "../messages/record.ts";
import {
  type AllowedMessage,
  beyondWindows,
  judgeMessage,
  type MessageApproval,
  type MessageContext,
  type MessageUse,
  messageApproval,
  type Signed,
  UNUSED_RULE,
  wholeOf,
} from "../policy/message-rules.ts";
import { type Forbidden, outsideOf, type Policies, policyFor, type Scope } from "../policy/policy.ts";
import { UNREADABLE } from "./guard.ts";

export interface JudgedMessage {
  /** The rule of the signer's policy that allows the message. */
  readonly allowed: AllowedMessage;
  /** The bound above which it needs approval; null if it is above none. */
  readonly approval: (MessageApproval & Forbidden) | null;
}

export interface AskedAt extends Pick<SignatureRecord, "message" | "owner" | "lane"> {
  readonly at: Date;
}

/** Judges by everything but the limits of hours and days. The key's policy may forbid it or require approval, too. */
export function judgeAsked(
  policies: Policies | null,
  { lane, at, message, owner }: AskedAt,
): JudgedMessage | Forbidden {
  if (policies !== null && policies.unreadable.length > 0) return UNREADABLE;
  const context: MessageContext = { ...lane, at };
  const ofSigner = policies === null ? null : policyFor(policies.signers, lane.signer);
  const ofKey = policies === null ? null : policyFor(policies.keys, owner);
  for (const [scope, policy] of [["signer", ofSigner] as const, ["key", ofKey] as const]) {
    const outside = policy === null ? null : outsideOf({ scope, policy }, lane.chainId, at);
    if (outside !== null) return scoped(scope, outside);
  }
  const allowed = judgeMessage(ofSigner?.messages ?? null, message, context);
  if ("refused" in allowed) return scoped("signer", allowed.refused);
  const byKey = ofKey === null || ofKey.messages === null ? null : judgeMessage(ofKey.messages, message, context);
  if (byKey !== null && "refused" in byKey) return scoped("key", byKey.refused);
  const asking = [askingApproval("signer", allowed), ...(byKey === null ? [] : [askingApproval("key", byKey)])];
  const [shortest = null] = asking.flat().sort((a, b) => a.expiresAfterMs - b.expiresAfterMs);
  return { allowed, approval: shortest };
}

function askingApproval(scope: Scope, allowed: AllowedMessage) {
  const bound = messageApproval(allowed);
  return bound === null ? [] : [{ ...bound, ...scoped(scope, bound) }];
}

function scoped(scope: Scope, { rule, detail }: Forbidden): Forbidden {
  return { rule: `${scope}.${rule}`, detail };
}

/** The limit of an hour or a day that would be exceeded with this much more; null if none. */
export function fullWindow(
  { rule }: AllowedMessage,
  use: MessageUse,
  { more, at }: { readonly more: Signed; readonly at: Date },
): Forbidden | null {
  const broken = beyondWindows(rule, use, more, at);
  return broken === null ? null : scoped("signer", broken);
}

/** Predicted decision about a message. `use` has the sums of the allowing rule; it is empty if no rule allows it. */
export interface ForeseenMessage {
  readonly forbidden: Forbidden | null;
  /** The bound above which it needs approval; null if it needs none. */
  readonly awaited: Forbidden | null;
  readonly allowed: AllowedMessage | null;
  readonly use: MessageUse;
}

/** Predicts the decision at this time. Only the decision within the commit is binding. */
export function foreseenMessage(
  policies: Policies | null,
  asked: AskedAt,
  used: ReadonlyMap<string, MessageUse>,
): ForeseenMessage {
  const judged = judgeAsked(policies, asked);
  if ("rule" in judged) return { forbidden: judged, awaited: null, allowed: null, use: UNUSED_RULE };
  const { allowed, approval } = judged;
  const use = used.get(allowed.rule.name) ?? UNUSED_RULE;
  const forbidden = fullWindow(allowed, use, { more: wholeOf(allowed), at: asked.at });
  const awaited = approval === null ? null : { rule: approval.rule, detail: approval.detail };
  return { forbidden, awaited, allowed, use };
}
