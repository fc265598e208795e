/** Parses a policy document. Reports every mistake with its path. */

import { fingerprintOfJson } from "../transaction/fingerprint.ts";
import { messageRules } from "./parse-message-rules.ts";
import {
  amount,
  chainId,
  type Document,
  Place,
  type PolicyWords,
  type Signature,
  setOf,
  waitingTime,
} from "./place.ts";
import {
  ANY,
  type ApprovalBound,
  type ArgumentBound,
  type ArgumentBounds,
  DEPLOY,
  type Limit,
  PLAIN,
  type Policies,
  type Policy,
  type Scope,
} from "./policy.ts";

export type ParsedPolicies = { readonly policies: Policies } | { readonly mistakes: readonly string[] };

export function parsePolicies(document: unknown, words: PolicyWords): ParsedPolicies {
  const mistakes: string[] = [];
  const root = new Place(document, "", { words, mistakes, abis: {} });
  const all = root.object(["signers", "keys", "abis"]);
  const part = (name: string) => root.at(name, all[name] === undefined ? {} : all[name]);
  root.context.abis = part("abis").object();
  const signers = policiesIn(part("signers"), "signer", address);
  const keys = policiesIn(part("keys"), "key", ({ raw }) => String(raw));
  if (!isStorable(all)) root.refuse("has characters that PostgreSQL cannot store (NUL or unpaired surrogates)", null);
  if (mistakes.length > 0) return { mistakes };
  const asksApproval = [...signers.values(), ...keys.values()].some((policy) => policy.requireApproval !== null);
  return { policies: { signers, keys, asksApproval, unreadable: [], hash: fingerprintOfJson(all), document: all } };
}

/** False if a text contains a lone surrogate or a NUL: PostgreSQL's `jsonb` refuses both. */
function isStorable(each: unknown) {
  if (typeof each === "string") return !/[\p{Cs}\0]/u.test(each);
  return typeof each !== "object" || each === null || Object.entries(each).flat().every(isStorable);
}

/** Policies in force if the document has mistakes or contains rules unknown to this version. */
export function unreadablePolicies(document: Document, mistakes: readonly string[]): Policies {
  const none = { signers: new Map(), keys: new Map(), asksApproval: false };
  return { ...none, unreadable: mistakes, hash: fingerprintOfJson(document), document };
}

/** Value used in place of an address that cannot be parsed. The mistake is reported. */
const NO_ADDRESS = "0x";
const FIELDS = ["chains", "to", "selectors", "calls", "hours", "maxValue", "maxCost", "requireApproval", "messages"];
const WINDOWS = ["perTransaction", "perHour", "perDay"];
const NO_LIMIT: Limit = { perTransaction: null, perHour: null, perDay: null };
const HOURS = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/;
const SELECTOR = /^0x[0-9a-fA-F]{8}$/;
const WEI = /^\d{1,78}$/;
/** ABI types whose value is a single number in one 32-byte word; the digits in the type are its number of bits. */
const NUMBERS = /^(?:uint(\d*)|address|bool)$/;

function policiesIn(place: Place, scope: Scope, nameOf: (place: Place) => string): ReadonlyMap<string, Policy> {
  const policies = new Map<string, Policy>();
  for (const [name, each] of place.members()) {
    const owner = name === ANY ? ANY : nameOf(place.at(name, name));
    // Refuse an address that occurs in two spellings: the later policy would replace the limits of the earlier one.
    if (policies.has(owner) && owner !== NO_ADDRESS) each.refuse("has a second policy under another spelling", null);
    policies.set(owner, policyIn(each, scope));
  }
  return policies;
}

function address(place: Place): string {
  return place.trying(NO_ADDRESS, (words) => words.parseAddress(String(place.raw)));
}

function policyIn(place: Place, scope: Scope): Policy {
  const field = place.fields(FIELDS);
  const calls = field("calls").list(call);
  const selectors = field("selectors").list(selectorsIn);
  const to = field("to").list((each) => (each.raw === DEPLOY ? DEPLOY : address(each)));
  return {
    chains: setOf(field("chains").list(chainId)),
    to: setOf(to),
    selectors: setOf(selectors?.flat() ?? null),
    hours: field("hours").maybe(hours),
    maxValue: field("maxValue").maybe(limit) ?? NO_LIMIT,
    maxCost: field("maxCost").maybe(limit) ?? NO_LIMIT,
    arguments: new Map(calls?.flat()),
    requireApproval: field("requireApproval").maybe(approval),
    messages: field("messages").maybe((messages) => messageRules(messages, scope)),
  };
}

function limit(place: Place): Limit {
  const field = place.fields(WINDOWS);
  const [perTransaction = null, perHour = null, perDay = null] = WINDOWS.map((name) => field(name).maybe(wei));
  return { perTransaction, perHour, perDay };
}

function approval(place: Place): ApprovalBound | null {
  const field = place.fields(["aboveValue", "aboveCost", "expiresAfter"]);
  const bounds = { aboveValue: field("aboveValue").maybe(wei), aboveCost: field("aboveCost").maybe(wei) };
  if (bounds.aboveValue === null && bounds.aboveCost === null)
    place.refuse("has neither aboveValue nor aboveCost", null);
  return { ...bounds, expiresAfterMs: waitingTime(field("expiresAfter")) };
}

const wei = (place: Place) => amount(place);

function hours(place: Place): Policy["hours"] {
  const [, fromHour, fromMinute, toHour, toMinute] = HOURS.exec(String(place.raw)) ?? [];
  const from = Number(fromHour) * 60 + Number(fromMinute);
  const to = Number(toHour) * 60 + Number(toMinute);
  if (Number.isInteger(from + to) && from !== to) return { from, to };
  return place.refuse("is not a period of the day in UTC, such as 08:00-18:00", null);
}

function selectorsIn(place: Place): readonly string[] {
  const text = String(place.raw);
  if (text === DEPLOY || text === PLAIN) return [text];
  if (SELECTOR.test(text)) return [text.toLowerCase()];
  return place.trying([], (words) => words.functions(text).map(({ selector }) => selector.toLowerCase()));
}

function call(place: Place): readonly (readonly [string, ArgumentBounds])[] {
  const field = place.fields(["abi", "function", "arguments"]);
  const named = field("abi");
  const abi = named.raw === undefined ? null : place.context.abis[String(named.raw)];
  if (abi !== null && !Array.isArray(abi)) return named.refuse("is not the name of a list in abis", []);
  const callee = field("function");
  const name = String(callee.raw);
  const found = callee.trying([], (words) => words.functions(abi === null ? name : { abi, function: name }));
  const bounds = field("arguments").members();
  return found.map((signature) => {
    const own = bounds.map(([argument, bound]) => boundIn(signature, argument, bound));
    return [signature.selector.toLowerCase(), own.filter((each) => each !== null)] as const;
  });
}

function boundIn({ inputs }: Signature, name: string, place: Place): ArgumentBound | null {
  const field = place.fields(["in", "min", "max"]);
  const at = inputs.findIndex((input, index) => input.name === name || String(index) === name);
  if (at < 0) return place.refuse("is not an argument of the function", null);
  const bits = bitsOf(inputs[at]?.type ?? "");
  if (bits === null || !inputs.slice(0, at).every(takesOneWord)) {
    return place.refuse("cannot be limited: only uint, address or bool can, with no array or tuple before it", null);
  }
  const allowed = setOf(field("in").list(number));
  return { name, word: at, bits, in: allowed, min: field("min").maybe(number), max: field("max").maybe(number) };
}

/** Parses a number: decimal text, hex (for addresses), or a boolean as 0 or 1. */
function number(place: Place): bigint {
  const { raw } = place;
  if (typeof raw === "string" && (WEI.test(raw) || /^0x[0-9a-fA-F]{1,64}$/.test(raw))) return BigInt(raw);
  if (typeof raw === "boolean") return raw ? 1n : 0n;
  return place.refuse("is neither a whole number as text, nor an address, nor a boolean", 0n);
}

function bitsOf(type: string): number | null {
  const match = NUMBERS.exec(type);
  if (match === null) return null;
  if (type === "address") return 160;
  return type === "bool" ? 1 : Number(match[1] || 256);
}

/** True if an ABI argument occupies one 32-byte word; fixed arrays and tuples may occupy more. */
function takesOneWord({ type }: Signature["inputs"][number]) {
  return !/^tuple|\[\d+\]/.test(type);
}
