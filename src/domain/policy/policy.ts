/**
 * Permissions and limits of a signer or an API key. They are checked at allocation and whenever a further payload is
 * committed, in the same database transaction. So two nodes, or two steps of one node, cannot exceed a limit together.
 */
import type { Address, Hex } from "../lane.ts";
import type { Payload } from "../transaction/transaction.ts";
import type { MessageRules } from "./message-rules.ts";
import { type Amounts, type Use, within } from "./use.ts";

/** Limits on an amount in wei: per transaction, per hour and per day; null: not limited. */
export interface Limit {
  readonly perTransaction: bigint | null;
  readonly perHour: bigint | null;
  readonly perDay: bigint | null;
}

/** Rules of one policy. Null in a field: that field limits nothing. */
export interface Policy {
  readonly chains: ReadonlySet<number> | null;
  /** Allowed receivers in lower case, and `DEPLOY` if contracts may be created. */
  readonly to: ReadonlySet<string> | null;
  /** Allowed selectors as lower-case hex, `PLAIN` for a payload without data, and `DEPLOY`. */
  readonly selectors: ReadonlySet<string> | null;
  /** Allowed minutes of the UTC day, `to` excluded. The range may cross midnight. */
  readonly hours: { readonly from: number; readonly to: number } | null;
  readonly maxValue: Limit;
  /** Limit on value + gas × fee cap. */
  readonly maxCost: Limit;
  /** Limits on the arguments of a call, by selector. A call without an entry is limited only by the other rules. */
  readonly arguments: ReadonlyMap<string, ArgumentBounds>;
  readonly requireApproval: ApprovalBound | null;
  /**
   * Messages that may be signed. Null: in a signer's policy no message is allowed; in a key's, the key adds no limit.
   */
  readonly messages: MessageRules | null;
}

/**
 * Above one of these amounts in wei, a transaction waits for the approval of a second API key. Null: this amount never
 * requires approval.
 */
export interface ApprovalBound {
  readonly aboveValue: bigint | null;
  /** Amount of value + gas × fee cap above which approval is required. */
  readonly aboveCost: bigint | null;
  /** How long a transaction waits for approval before it ends. */
  readonly expiresAfterMs: number;
}

export interface Policies {
  /** Policies of signers, by address in lower case; `ANY` applies to signers without a policy of their own. */
  readonly signers: ReadonlyMap<string, Policy>;
  /** Policies of API keys, by the key's name; `ANY` applies to keys without a policy of their own. */
  readonly keys: ReadonlyMap<string, Policy>;
  /** True if a policy has `requireApproval`. Only then can transactions that wait without a nonce own request ids. */
  readonly asksApproval: boolean;
  /**
   * Mistakes that this version finds in the policy document. If there are any, its rules are unknown, and no nonce is
   * allocated.
   */
  readonly unreadable: readonly string[];
  /** SHA-256 of the policy document. */
  readonly hash: Hex;
  /** The policy document as its author wrote it. */
  readonly document: Readonly<Record<string, unknown>>;
}

export const ANY = "*";
export const DEPLOY = "deploy";
export const PLAIN = "0x";

export type Scope = "signer" | "key";

/** A policy, the signer or API key that it applies to, and the amounts used in the current hour and day. */
export interface Judge {
  readonly scope: Scope;
  readonly policy: Policy;
  readonly use: Use;
}

export interface Asked {
  readonly chainId: number;
  readonly payload: Pick<Payload, "to" | "data">;
  /** Highest value and cost of the transaction. */
  readonly worst: Amounts;
  /**
   * The part of `worst` that is not counted yet. It is less than `worst` if another payload of the same transaction was
   * counted.
   */
  readonly more: Amounts;
  /**
   * What is checked. "payload": all rules. "cost": only the limits on amounts; used for the same payload at another
   * price, or for a cancel. "placeholder": like "cost", but limits of API keys are ignored. Otherwise a key at its
   * limit could reserve a nonce, never use it, and block the transactions above it at no cost.
   */
  readonly about: "payload" | "cost" | "placeholder";
}

/** Refusal by a policy. `rule`: stable name of the rule that refuses; `detail`: text for people. */
export interface Forbidden {
  readonly rule: string;
  readonly detail: string;
}

export function policyFor(policies: ReadonlyMap<string, Policy>, name: string | null): Policy | null {
  return name === null ? null : (policies.get(name) ?? policies.get(ANY) ?? null);
}

/** A copy of the policy with only those rules that depend neither on the time nor on amounts used before. */
export function timeless(policy: Policy): Policy {
  const alone = ({ perTransaction }: Limit): Limit => ({ perTransaction, perHour: null, perDay: null });
  return { ...policy, hours: null, maxValue: alone(policy.maxValue), maxCost: alone(policy.maxCost) };
}

/** True if a policy limits this signer, or the API key that owns the transaction. */
export function isLimited({ signers, keys }: Policies, signer: Address, owner: string | null): boolean {
  return policyFor(signers, signer) !== null || policyFor(keys, owner) !== null;
}

/** The first policy rule that forbids the transaction; null if none does. */
export function forbidden(judges: readonly Judge[], asked: Asked, at: Date): Forbidden | null {
  for (const judge of judges) {
    if (asked.about === "placeholder" && judge.scope === "key") continue;
    const broken = (asked.about === "payload" ? payloadRule(judge, asked, at) : null) ?? amountRule(judge, asked, at);
    if (broken !== null) return { rule: `${judge.scope}.${broken.rule}`, detail: broken.detail };
  }
  return null;
}

/** The rule about chains or hours that forbids anything of this kind now; null if none does. `at` null: any hour. */
export function outsideOf({ scope, policy }: Pick<Judge, "scope" | "policy">, chainId: number, at: Date | null) {
  const { chains, hours } = policy;
  const not = (rule: string, what: string) => ({ rule, detail: `the policy of this ${scope} does not allow ${what}` });
  if (chains?.has(chainId) === false) return not("chains", `chain ${chainId}`);
  const isShut = at !== null && hours !== null && !isOpen(hours, at);
  return isShut ? not("hours", `it at ${at.toISOString().slice(11, 16)} UTC`) : null;
}

function payloadRule({ scope, policy }: Judge, { chainId, payload }: Asked, at: Date): Forbidden | null {
  const { chains, to, selectors, hours } = policy;
  const not = (rule: string, what: string) => ({ rule, detail: `the policy of this ${scope} does not allow ${what}` });
  const receiver = payload.to ?? DEPLOY;
  const selector = selectorOf(payload);
  if (chains?.has(chainId) === false) return not("chains", `chain ${chainId}`);
  if (to?.has(receiver) === false) return not("to", `the receiver ${receiver}`);
  if (selectors?.has(selector) === false) return not("selectors", `the function ${selector}`);
  if (hours !== null && !isOpen(hours, at)) return not("hours", `it at ${at.toISOString().slice(11, 16)} UTC`);
  const bounds = payload.to === null ? undefined : policy.arguments.get(selector);
  const beyond = bounds === undefined ? null : outOfBounds(bounds, payload.data);
  return beyond && not(`arguments.${beyond.name}`, `the argument ${beyond.name} to be ${beyond.value ?? "nothing"}`);
}

/** The approval threshold that the transaction exceeds, and how long it may wait for approval. */
export interface Awaited extends Forbidden {
  readonly expiresAfterMs: number;
}

/**
 * The approval that the transaction needs; null if none. If it exceeds several approval thresholds, one approval is
 * enough, within the shortest of their time limits.
 */
export function approvalOf(judges: readonly Judge[], { worst, about }: Asked): Awaited | null {
  if (about !== "payload") return null;
  const asking = judges.flatMap(({ scope, policy: { requireApproval } }) => {
    const above = requireApproval && aboveBound(requireApproval, worst);
    if (requireApproval === null || above === null) return [];
    const detail = `${above.amount} wei is above requireApproval.${above.bound} of this ${scope}, which is ${above.most}`;
    return [{ rule: `${scope}.requireApproval`, detail, expiresAfterMs: requireApproval.expiresAfterMs }];
  });
  const [first] = asking;
  if (first === undefined) return null;
  return { ...first, expiresAfterMs: Math.min(...asking.map(({ expiresAfterMs }) => expiresAfterMs)) };
}

function aboveBound({ aboveValue, aboveCost }: ApprovalBound, { value, cost }: Amounts) {
  if (aboveValue !== null && value > aboveValue) return { bound: "aboveValue", amount: value, most: aboveValue };
  return aboveCost !== null && cost > aboveCost ? { bound: "aboveCost", amount: cost, most: aboveCost } : null;
}

/**
 * Selector of a call; `PLAIN` if there is no data, `DEPLOY` for a contract creation. Data of one to three bytes has no
 * selector: it is returned unchanged, and no list of allowed selectors contains it.
 */
function selectorOf({ to, data }: Pick<Payload, "to" | "data">) {
  return to === null ? DEPLOY : data.slice(0, 10).toLowerCase();
}

function isOpen({ from, to }: { from: number; to: number }, at: Date) {
  const minute = at.getUTCHours() * 60 + at.getUTCMinutes();
  return from <= to ? minute >= from && minute < to : minute >= from || minute < to;
}

const AMOUNTS = [
  ["maxValue", "value"],
  ["maxCost", "cost"],
] as const;

/**
 * The first limit on amounts that is exceeded. A transaction that adds nothing to the amount already counted is
 * allowed: the limits may have been lowered since it was counted.
 */
function amountRule({ scope, policy, use }: Judge, { worst, more }: Asked, at: Date): Forbidden | null {
  const used = within(use, at);
  for (const [limit, amount] of AMOUNTS) {
    if (more[amount] === 0n) continue;
    const { perTransaction, perHour, perDay } = policy[limit];
    const sums = [
      ["perTransaction", perTransaction, worst[amount]],
      ["perHour", perHour, used.hour[amount] + more[amount]],
      ["perDay", perDay, used.day[amount] + more[amount]],
    ] as const;
    for (const [window, most, sum] of sums) {
      if (most === null || sum <= most) continue;
      const detail = `${sum} wei would be above ${limit}.${window} of this ${scope}, which is ${most}`;
      return { rule: `${limit}.${window}`, detail };
    }
  }
  return null;
}

/** Limits on one argument of a call. Null: not limited in that way. */
export interface ArgumentBound {
  readonly name: string;
  /** Index of the argument's word after the selector. */
  readonly word: number;
  /** Bits of the word that the argument's type uses; higher bits must be zero. */
  readonly bits: number;
  /** The only allowed values of the argument, as numbers; an address is a number too. */
  readonly in: ReadonlySet<bigint> | null;
  readonly min: bigint | null;
  readonly max: bigint | null;
}

export type ArgumentBounds = readonly ArgumentBound[];

const SELECTOR_DIGITS = 2 + 8;
const WORD_DIGITS = 64;

/** Finds the first argument that is out of its limits. Its value is null if the data ends before the argument. */
function outOfBounds(bounds: ArgumentBounds, data: Hex) {
  for (const bound of bounds) {
    const digits = data.slice(SELECTOR_DIGITS + bound.word * WORD_DIGITS).slice(0, WORD_DIGITS);
    const value = digits.length < WORD_DIGITS ? null : BigInt(`0x${digits}`);
    if (value === null || !isAllowed(bound, value)) return { name: bound.name, value };
  }
  return null;
}

function isAllowed({ bits, in: allowed, min, max }: ArgumentBound, value: bigint) {
  if (value >> BigInt(bits) !== 0n) return false;
  return (allowed?.has(value) ?? true) && value >= (min ?? 0n) && (max === null || value <= max);
}
