/**
 * Policy checks of a lane: decides from the policies and the amounts used so far if a payload may be committed, and
 * which amounts are charged for it.
 */

import type { Address, Lane } from "../lane.ts";
import { type Charge, difference, NOTHING_PAID, settledCharges, unsettledCharges } from "../policy/charges.ts";
import {
  type Asked,
  type Awaited,
  approvalOf,
  type Forbidden,
  forbidden,
  isLimited,
  type Judge,
  type Policies,
  policyFor,
} from "../policy/policy.ts";
import { added, chargedHour, isNothing, UNUSED, type Use } from "../policy/use.ts";
import { feeCap } from "../transaction/fees.ts";
import type { Attempt, PreparedIntent } from "../transaction/transaction.ts";
import { isSettled } from "../transaction/transitions.ts";
import type { Charged } from "./changes.ts";
import type { Guard, Judging, Ledger, LedgerTransaction } from "./ledger.ts";
import { BatchRefused, loaded, Part } from "./part.ts";
import type { Spending, TransitionItem } from "./writes.ts";

const NAMED = { kind: "named" } as const;

/** Policy check that has the policies, but not yet the amounts used so far. */
export function nothingUsed(policies: Policies): Guard {
  return { policies, use: undefined, keyUse: Part.of("use of key", NAMED), charges: Part.of("charges of", NAMED) };
}

type Holder = Pick<LedgerTransaction, "txId" | "owner">;

/** Result of a policy check. `charges`: amounts to record in the same commit as the write that was checked. */
export type Verdict = { readonly forbidden: Forbidden } | { readonly charges: readonly Charged[] };

/**
 * Result of the policy check of a new transaction. `awaited`: set if no rule forbids the transaction, but it needs
 * approval first.
 */
export type FirstVerdict = Verdict | { readonly awaited: Awaited };

const UNLIMITED: Verdict = { charges: [] };
export const UNREADABLE = {
  rule: "policy.unreadable",
  detail: "the policy document in force cannot be read by this version",
};

/** Policy check of a new transaction. Call it before any change of that transaction is recorded. */
export function judgeFirst(
  { ledger, at }: Judging,
  intent: PreparedIntent,
  { about = "payload", approved = false }: { about?: Asked["about"]; approved?: boolean } = {},
): FirstVerdict {
  const guard = guardOf(ledger, intent);
  if (guard === null) return UNLIMITED;
  const judged = { ...intent.payload, gasCost: intent.gasCost, about, ordinal: 0, charges: [], approved };
  return judge(guard, { lane: ledger.lane, at, holder: intent }, judged);
}

/**
 * Turns "needs approval" into "forbidden". Only a create can wait for approval, because it has no nonce yet; other
 * writes cannot.
 */
export function unapproved(verdict: FirstVerdict): Verdict {
  if (!("awaited" in verdict)) return verdict;
  const { rule, detail } = verdict.awaited;
  return { forbidden: { rule, detail: `${detail}; only a transaction without a nonce can wait for approval` } };
}

/** Policy check of a step of an existing transaction: a new payload, an outcome, or the reversal of an outcome. */
export function judgeStep({ ledger, at }: Judging, tx: LedgerTransaction, item: TransitionItem): Verdict {
  if (item.spends !== undefined && ledger.guard?.policies.unreadable.length) return { forbidden: UNREADABLE };
  const guard = guardOf(ledger, tx);
  if (guard === null || !concernsLimits(item)) return UNLIMITED;
  const charges = guard.charges.get(tx.txId) ?? [];
  const spending = item.spends ?? signedSpending(item, charges);
  if (spending !== null) {
    return unapproved(
      judge(guard, { lane: ledger.lane, at, holder: tx }, { ...spending, ordinal: tx.attemptCount + 1, charges }),
    );
  }
  return { charges: correction(charges, item).map((charge) => chargedTo(tx, charge)) };
}

/**
 * Amounts that the signer and the API key have used of their limits, and the `charges` of the transaction that is
 * checked.
 */
export interface PolicyUse {
  readonly lane: Lane;
  readonly at: Date;
  /** Name of the API key that owns the transaction or the request. */
  readonly owner: string | null;
  readonly signer: Use;
  readonly key: Use;
  readonly charges: readonly Charge[];
}

/** Predicts the result of a policy check at the time `use.at`. Only the check within the commit is binding. */
export function foreseen(policies: Policies, use: PolicyUse, spends: Spending): FirstVerdict {
  const { lane, at, owner, signer, key, charges } = use;
  if (policies.unreadable.length > 0) return { forbidden: UNREADABLE };
  const guard = { ...nothingUsed(policies), use: signer };
  const keyUse = guard.keyUse.set(nameOf(owner), key);
  const holder = { txId: "", owner };
  return judge({ ...guard, keyUse }, { lane, at, holder }, { ...spends, ordinal: 0, charges });
}

/** True for writes for which a store must load the charges of the transaction. */
export function concernsLimits({ spends, attempt, from, to }: TransitionItem): boolean {
  const isOwn = attempt !== undefined && !isElsewhere(attempt);
  return spends !== undefined || isOwn || isSettled(from) !== isSettled(to);
}

/**
 * The outcome of a transaction corrects the counted amounts to the amounts that were paid. If the outcome is undone,
 * the worst case is counted again.
 */
function correction(charges: readonly Charge[], { paid, event, from, to }: TransitionItem) {
  if (!isSettled(to)) return isSettled(from) ? unsettledCharges(charges) : [];
  if (event === "giveUp" || event === "expire") return settledCharges(charges, NOTHING_PAID);
  return paid === undefined ? [] : settledCharges(charges, paid);
}

/**
 * Spending to check when a transaction is first signed: the amounts of its check at allocation, but at the price to be
 * signed, which may have risen since. Null if the step signs nothing, or if the transaction was accepted before there
 * was a policy: it is not checked until a step declares what it spends.
 */
function signedSpending({ event, attempt }: TransitionItem, charges: readonly Charge[]): Spending | null {
  if (attempt === undefined || isElsewhere(attempt)) return null;
  if (event !== "sign")
    throw new BatchRefused(`the transition ${event} adds an attempt, but does not declare what it spends`);
  const last = charges.findLast(({ settles }) => !settles);
  if (last === undefined) return null;
  const gasCost = attempt.gas * feeCap(attempt.fees);
  return { to: null, data: "0x", value: last.moves, gasCost, about: "cost" };
}

/**
 * True for an attempt that another program sent, or of which only the hash is known, from the caller or from the chain:
 * the ledger does not know its content.
 */
function isElsewhere({ kind, foreign }: Pick<Attempt, "kind" | "foreign">) {
  return kind === "external" || foreign === true;
}

interface Judged extends Spending {
  readonly ordinal: number;
  readonly charges: readonly Charge[];
  readonly approved?: boolean;
}

function judge(
  guard: Guard,
  { lane, at, holder }: { lane: Lane; at: Date; holder: Holder },
  judged: Judged,
): FirstVerdict {
  const { value, gasCost, charges, ordinal } = judged;
  const worst = { value, cost: value + gasCost };
  const more = difference(charges, worst);
  const judges = judgesOf(guard, lane.signer, holder.owner);
  const asked: Asked = { chainId: lane.chainId, payload: judged, worst, more, about: judged.about };
  const broken = forbidden(judges, asked, at);
  if (broken !== null) return { forbidden: broken };
  const awaited = judged.approved === true ? null : approvalOf(judges, asked);
  if (awaited !== null) return { awaited };
  if (isNothing(more) && charges.findLast(({ settles }) => !settles)?.moves === value) return UNLIMITED;
  const hourMs = judges.reduce((latest, { use }) => Math.max(latest, chargedHour(use, at)), 0);
  const charged = chargedTo(holder, { ...more, ordinal, moves: value, hourMs, settles: false });
  return { charges: [judged.about === "placeholder" ? { ...charged, pastKeyLimits: true } : charged] };
}

function judgesOf({ policies, use, keyUse }: Guard, signer: Address, owner: string | null): readonly Judge[] {
  const ofSigner = policyFor(policies.signers, signer);
  const ofKey = policyFor(policies.keys, owner);
  return [
    ...(ofSigner === null
      ? []
      : [{ scope: "signer", policy: ofSigner, use: loaded(use, "what the signer has used") } as const]),
    ...(ofKey === null ? [] : [{ scope: "key", policy: ofKey, use: keyUse.get(nameOf(owner)) ?? UNUSED } as const]),
  ];
}

/** Key of what an API key has used. A transaction without a key has no such policy, and no key has an empty name. */
function nameOf(owner: string | null) {
  return owner ?? "";
}

function chargedTo({ txId, owner }: Holder, charge: Charge): Charged {
  return { kind: "charged", txId, owner, charge };
}

/** Returns the policy check for this transaction; null if no policy limits it. */
function guardOf({ guard, lane }: Ledger, { owner }: Holder) {
  return guard !== null && isLimited(guard.policies, lane.signer, owner) ? guard : null;
}

/** A copy of this policy check with one more charge. */
export function foldCharge(guard: Guard, signer: Address, { txId, owner, charge }: Charged): Guard {
  const { policies, use, keyUse, charges } = guard;
  const name = nameOf(owner);
  const isOfKey = policyFor(policies.keys, owner) !== null;
  const isOfSigner = policyFor(policies.signers, signer) !== null;
  return {
    policies,
    use: isOfSigner ? added(loaded(use, "what the signer has used"), charge.hourMs, charge) : use,
    keyUse: isOfKey ? keyUse.set(name, added(keyUse.get(name) ?? UNUSED, charge.hourMs, charge)) : keyUse,
    charges: charges.set(txId, [...(charges.atHand(txId) ?? []), charge]),
  };
}
