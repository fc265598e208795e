/**
 * Rules of a policy about messages, and the check of a message by them. A message is refused unless a rule allows it:
 * a permit moves money as a transaction does. The key holder makes the same check (domain/keys/signing.ts).
 */
import type { Address } from "../lane.ts";
import {
  domainFields,
  encodeType,
  type Message,
  type TypedData,
  type TypedDomain,
  type TypedValue,
} from "../messages/message.ts";
import { personalText } from "../messages/personal-text.ts";
import { beyondSignIn, looksLikeSignIn, parseSignIn, type SignInBounds } from "../messages/sign-in.ts";
import { type Windows, windowsAt } from "./use.ts";

/** Numbers of signatures that a rule allows; null: not limited. */
export interface SignatureLimit {
  readonly perHour: number | null;
  readonly perDay: number | null;
}

/** Bounds of one field of typed data. Null: not bounded in that way. */
export interface FieldBound {
  /** Names from the primary type down to the field. A list on the way stands for every element. */
  readonly path: readonly string[];
  /** The only allowed values, in the normal form of the field's type. */
  readonly in: ReadonlySet<string> | null;
  readonly min: bigint | null;
  readonly max: bigint | null;
  /** The field is a time in seconds, and at most this far in the future. */
  readonly withinSeconds: number | null;
}

/** The field that the limits on amounts count, in its own unit. In a list, the sum of the elements counts. */
export interface AmountLimit {
  readonly path: readonly string[];
  readonly perSignature: bigint | null;
  readonly perHour: bigint | null;
  readonly perDay: bigint | null;
}

/** Signatures above this amount wait for a second key; `aboveAmount` null: every signature does. */
export interface MessageApproval {
  readonly aboveAmount: bigint | null;
  readonly expiresAfterMs: number;
}

interface AnyRule {
  /** Name of the rule within its policy. */
  readonly name: string;
  readonly signatures: SignatureLimit;
  readonly requireApproval: MessageApproval | null;
}

export interface TypedDataRule extends AnyRule {
  /** Compared exactly. A domain field that is absent here must be absent in the message. */
  readonly domain: TypedDomain;
  /** `encodeType` of the primary type, compared exactly. */
  readonly type: string;
  readonly fields: readonly FieldBound[];
  readonly amount: AmountLimit | null;
}

export interface PrefixRule extends AnyRule {
  readonly prefix: string;
  /** Bytes of the message in UTF-8, prefix included. */
  readonly maxLength: number;
}

/** Sign-In with Ethereum (ERC-4361). */
export interface SignInRule extends AnyRule {
  readonly signIn: SignInBounds;
}

export type PersonalRule = PrefixRule | SignInRule;
export type MessageRule = TypedDataRule | PersonalRule;

/** Rules of one policy, in the order of the document. */
export interface MessageRules {
  readonly typedData: readonly TypedDataRule[];
  readonly personal: readonly PersonalRule[];
}

/**
 * Chain, signer and time of a signature. `at` null: rules about time are skipped, because a key holder does not have the
 * database's clock.
 */
export interface MessageContext {
  readonly chainId: number;
  readonly signer: Address;
  readonly at: Date | null;
}

/** The rule that allows a message, and the amount that it counts; 0 if the rule counts no amount. */
export interface AllowedMessage {
  readonly rule: MessageRule;
  readonly amount: bigint;
}

/** A refusal: the place of the rule in its policy, and text for people. */
export interface RefusedMessage {
  readonly rule: string;
  readonly detail: string;
}

/**
 * The first rule that allows the message, or the refusal of the rule that comes closest. The limits of hours and days
 * are judged afterwards, by the allowing rule alone (`beyondWindows`).
 */
export function judgeMessage(
  rules: MessageRules | null,
  message: Message,
  context: MessageContext,
): AllowedMessage | { readonly refused: RefusedMessage } {
  const never = message.kind === "personal" ? personalText(message.bytes) : null;
  if (never !== null && "rule" in never) return { refused: { ...never, rule: `messages.${never.rule}` } };
  if (rules === null) return { refused: NO_RULE };
  const tried =
    message.kind === "typedData"
      ? rules.typedData.map((rule) => tryTypedData(rule, message, context))
      : rules.personal.map((rule) => tryPersonal(rule, message.bytes, context));
  const allowed = tried.find((each) => "rule" in each);
  if (allowed !== undefined) return allowed;
  const closest = tried.reduce<Miss | null>((best, each) => {
    return "rule" in each || (best !== null && best.steps >= each.steps) ? best : each;
  }, null);
  return { refused: closest?.refused ?? NO_RULE };
}

const NO_RULE: RefusedMessage = { rule: "messages", detail: "no rule of the signer's policy allows this message" };

/** Why a rule does not allow a message. `steps`: how many of the rule's conditions held before that. */
interface Miss {
  readonly steps: number;
  readonly refused: RefusedMessage;
}

function miss({ name }: AnyRule, steps: number, part: string, detail: string): Miss {
  return { steps, refused: { rule: `messages.${name}.${part}`, detail: `rule ${name} does not allow ${detail}` } };
}

function tryTypedData(rule: TypedDataRule, message: TypedData, context: MessageContext): AllowedMessage | Miss {
  const type = encodeType(message.types, message.primaryType);
  if (type !== rule.type) return miss(rule, 0, "type", `the type ${shown(type)}`);
  const other = otherDomainField(rule.domain, message.domain);
  if (other !== null) return miss(rule, 1, `domain.${other}`, `the domain's ${other} ${shown(message.domain[other])}`);
  const { chainId } = rule.domain;
  if (chainId !== undefined && chainId !== String(context.chainId))
    return miss(rule, 2, "domain.chainId", `chain ${chainId} for a signer on chain ${context.chainId}`);
  for (const [index, bound] of rule.fields.entries()) {
    const beyond = valuesAt(message.value, bound.path).find((value) => !isWithin(bound, value, context.at));
    const name = bound.path.join(".");
    if (beyond !== undefined) return miss(rule, 3 + index, `fields.${name}`, `${name} to be ${shown(beyond)}`);
  }
  return tryAmount(rule, message);
}

function tryAmount(rule: TypedDataRule, message: TypedData): AllowedMessage | Miss {
  if (rule.amount === null) return { rule, amount: 0n };
  const { path, perSignature } = rule.amount;
  const amount = valuesAt(message.value, path).reduce((sum, value) => sum + BigInt(value), 0n);
  if (perSignature === null || amount <= perSignature) return { rule, amount };
  return miss(rule, 3 + rule.fields.length, "amount.perSignature", `${amount}, above ${perSignature}`);
}

/** The first domain field that differs, in any code unit; null if the domains are the same. */
function otherDomainField(wanted: TypedDomain, asked: TypedDomain): keyof TypedDomain | null {
  const fields = [...domainFields(wanted), ...domainFields(asked)].map(({ name }) => name as keyof TypedDomain);
  return fields.find((name) => wanted[name] !== asked[name]) ?? null;
}

/** Values without members at a path: lists on the way, and at its end, are flattened. */
function valuesAt(value: TypedValue, path: readonly string[]): readonly string[] {
  if (Array.isArray(value)) return (value as readonly TypedValue[]).flatMap((each) => valuesAt(each, path));
  const [name, ...rest] = path;
  if (name === undefined) return [String(value)];
  const members = value as { readonly [member: string]: TypedValue };
  const member = Object.hasOwn(members, name) ? members[name] : undefined;
  if (member === undefined) throw new Error(`the message has no member ${name}, though its type has`);
  return valuesAt(member, rest);
}

function isWithin({ in: allowed, min, max, withinSeconds }: FieldBound, value: string, at: Date | null): boolean {
  if (allowed?.has(value) === false) return false;
  if (min !== null && BigInt(value) < min) return false;
  if (max !== null && BigInt(value) > max) return false;
  if (withinSeconds === null || at === null) return true;
  return BigInt(value) <= BigInt(Math.floor(at.getTime() / 1_000) + withinSeconds);
}

function tryPersonal(rule: PersonalRule, bytes: string, context: MessageContext): AllowedMessage | Miss {
  const read = personalText(bytes as `0x${string}`);
  if (!("text" in read)) return miss(rule, 0, "text", "this message");
  if ("signIn" in rule) return trySignIn(rule, read.text, context);
  // A prefix such as "Log in" must not allow the sign-in of another site, whose rule also wants a nonce.
  if (looksLikeSignIn(read.text)) return miss(rule, 0, "prefix", "a sign-in (ERC-4361), which needs a rule of its own");
  if (!read.text.startsWith(rule.prefix)) return miss(rule, 0, "prefix", "a message that begins otherwise");
  const length = (bytes.length - 2) / 2;
  if (length > rule.maxLength) return miss(rule, 1, "maxLength", `${length} bytes`);
  return { rule, amount: 0n };
}

function trySignIn(rule: SignInRule, text: string, { chainId, signer }: MessageContext): AllowedMessage | Miss {
  const signIn = parseSignIn(text);
  if (signIn === null) return miss(rule, 0, "signIn", "a message that is no sign-in by the grammar of ERC-4361");
  const beyond = beyondSignIn(signIn, rule.signIn, signer);
  if (beyond !== null) return miss(rule, 1, `signIn.${beyond}`, `this ${beyond}`);
  if (rule.signIn.chainId !== chainId) return miss(rule, 2, "signIn.chainId", `a signer on chain ${chainId}`);
  return { rule, amount: 0n };
}

const LONGEST_SHOWN = 80;

function shown(value: string | undefined): string {
  if (value === undefined) return "to be absent";
  return JSON.stringify(value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value);
}

/** Signatures of a rule, and the amounts that they count. */
export interface Signed {
  readonly amount: bigint;
  readonly signatures: number;
}

export type MessageUse = Windows<Signed>;

const NONE: Signed = { amount: 0n, signatures: 0 };
export const UNUSED_RULE: MessageUse = { hourMs: 0, hour: NONE, day: NONE };

/** Amounts that one signature adds to the sums of the rule that allows it. */
export function wholeOf({ amount }: AllowedMessage): Signed {
  return { amount, signatures: 1 };
}

/** The hour and the day at this time, and what is counted in them. */
export function countedUntil(use: MessageUse, at: Date): MessageUse {
  return windowsAt(use, at, NONE);
}

/** Counts more at this time. */
export function countedAlso(use: MessageUse, more: Signed, at: Date): MessageUse {
  const { hourMs, hour, day } = countedUntil(use, at);
  const plus = (sum: Signed) => ({
    amount: sum.amount + more.amount,
    signatures: sum.signatures + more.signatures,
  });
  return { hourMs, hour: plus(hour), day: plus(day) };
}

/** The limit of an hour or a day that would be exceeded with this much more; null if none. */
export function beyondWindows(rule: MessageRule, use: MessageUse, more: Signed, at: Date): RefusedMessage | null {
  const after = countedAlso(use, more, at);
  const { amounts, signatures } = windowLimits(rule);
  const sums = [
    ["amount.perHour", amounts.perHour, after.hour.amount, more.amount],
    ["amount.perDay", amounts.perDay, after.day.amount, more.amount],
    ["signatures.perHour", signatures.perHour, after.hour.signatures, more.signatures],
    ["signatures.perDay", signatures.perDay, after.day.signatures, more.signatures],
  ] as const;
  // Check only amounts that grow: a limit may have been lowered below the sum that is counted already.
  const broken = sums.find(([, most, sum, added]) => most !== null && Number(added) !== 0 && sum > most);
  if (broken === undefined) return null;
  const [window, most, sum] = broken;
  const detail = `${sum} would be above ${window} of rule ${rule.name}, which is ${most}`;
  return { rule: `messages.${rule.name}.${window}`, detail };
}

/** Limits of a rule on hours and days; null: not limited. */
export function windowLimits(rule: MessageRule) {
  const { perHour = null, perDay = null } = "amount" in rule && rule.amount !== null ? rule.amount : {};
  return { amounts: { perHour, perDay }, signatures: rule.signatures };
}

/** The rule's bound above which a signature needs approval, if this one is above it. */
export function messageApproval({ rule, amount }: AllowedMessage): (RefusedMessage & MessageApproval) | null {
  const bound = rule.requireApproval;
  if (bound === null || (bound.aboveAmount !== null && amount <= bound.aboveAmount)) return null;
  const above = bound.aboveAmount === null ? "every signature" : `${amount}, above ${bound.aboveAmount},`;
  return {
    ...bound,
    rule: `messages.${rule.name}.requireApproval`,
    detail: `rule ${rule.name}: ${above} needs approval`,
  };
}
