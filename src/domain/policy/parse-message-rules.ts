/** Parses the rules of a policy document about messages. Reports every mistake with its path. */

import {
  baseOf,
  DOMAIN_FIELDS,
  encodeType,
  fieldsOf,
  type TypedDomain,
  type TypedField,
  type Types,
} from "../messages/message.ts";
import { atomIn, isAtom, isStructName } from "../messages/parse-message.ts";
import { personalText } from "../messages/personal-text.ts";
import { looksLikeSignIn } from "../messages/sign-in.ts";
import type {
  AmountLimit,
  FieldBound,
  MessageApproval,
  MessageRules,
  PersonalRule,
  SignatureLimit,
  TypedDataRule,
} from "./message-rules.ts";
import { amount, chainId, type Place, setOf, waitingTime } from "./place.ts";

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const SHORTEST_PREFIX = 8;
const LONGEST_MESSAGE = 65_536;
const A_YEAR_SECONDS = 365 * 24 * 3_600;
const COMMON = ["name", "signatures", "requireApproval"];

/** `scope`: limits of hours and days are counted for each signer, so a key's rules have none. */
export function messageRules(place: Place, scope: "signer" | "key"): MessageRules {
  const field = place.fields(["typedData", "personal"]);
  const typedData = field("typedData").list((each) => typedDataRule(each, scope)) ?? [];
  const personal = field("personal").list((each) => personalRule(each, scope)) ?? [];
  const names = [...typedData, ...personal].map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) place.refuse(`has two rules named ${twice}`, null);
  return { typedData, personal };
}

function common(field: (name: string) => Place, scope: "signer" | "key") {
  const { raw } = field("name");
  const name = String(raw);
  if (typeof raw !== "string" || !NAME.test(raw))
    field("name").refuse("is not a name of up to 64 letters, digits, - and _", null);
  const counted = field("signatures");
  const signatures = counted.maybe(signatureLimit) ?? { perHour: null, perDay: null };
  if (scope === "key" && counted.raw !== undefined) counted.refuse("is counted for signers only: put it there", null);
  return { name, signatures, requireApproval: field("requireApproval").maybe(approval) };
}

function signatureLimit(place: Place): SignatureLimit {
  const field = place.fields(["perHour", "perDay"]);
  return { perHour: field("perHour").maybe(count), perDay: field("perDay").maybe(count) };
}

function count(place: Place): number {
  const { raw } = place;
  if (typeof raw === "number" && Number.isSafeInteger(raw) && raw >= 0) return raw;
  return place.refuse("is not a number of signatures", 0);
}

function approval(place: Place): MessageApproval {
  const field = place.fields(["aboveAmount", "expiresAfter"]);
  const aboveAmount = field("aboveAmount").maybe((each) => amount(each, "an amount"));
  return { aboveAmount, expiresAfterMs: waitingTime(field("expiresAfter")) };
}

function typedDataRule(place: Place, scope: "signer" | "key"): TypedDataRule {
  const field = place.fields([...COMMON, "domain", "type", "fields", "amount"]);
  const rule = common(field, scope);
  const type = String(field("type").raw);
  const struct = decodeType(type);
  if (struct === null) field("type").refuse(NO_TYPE, null);
  const at = (path: string, each: Place) => (struct === null ? null : fieldAt(struct, path, each));
  const bounds = field("fields").maybe((fields) => fields.members().map(([path, each]) => bound(path, each, at)));
  const limits = field("amount").maybe((each) => amountLimit(each, at, scope));
  const { requireApproval } = rule;
  if (limits === null && requireApproval !== null && requireApproval.aboveAmount !== null)
    field("requireApproval").refuse("has aboveAmount, but the rule names no amount", null);
  return { ...rule, domain: domainIn(field("domain")), type, fields: bounds ?? [], amount: limits };
}

const NO_TYPE =
  "is not a type as EIP-712 encodes it: the primary type, then the structs that it needs, sorted by name, such as Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)";

interface Struct {
  readonly types: Types;
  readonly primaryType: string;
}

/** Parses the result of `encodeType`; null if the text is not exactly that. */
export function decodeType(text: string): Struct | null {
  const all = [...text.matchAll(/([A-Za-z_$][\w$]*)\(([^()]*)\)/g)];
  const types = Object.fromEntries(all.map(([, name = "", members = ""]) => [name, membersOf(members)] as const));
  const primaryType = all[0]?.[1];
  if (primaryType === undefined || text.length > 10_000 || !Object.keys(types).every(isStructName)) return null;
  const known = ({ type }: TypedField) => Object.hasOwn(types, baseOf(type)) || isAtom(baseOf(type));
  if (!Object.values(types).flat().every(known)) return null;
  return encodeType(types, primaryType) === text ? { types, primaryType } : null;
}

function membersOf(text: string): readonly TypedField[] {
  return text === ""
    ? []
    : text.split(",").map((member) => {
        const [type = "", name = ""] = member.split(" ");
        return { type, name };
      });
}

/** Type of the field at a path, without the brackets of lists. Null, and a mistake, if there is no such field. */
function fieldAt({ types, primaryType }: Struct, path: string, place: Place): string | null {
  let type = primaryType;
  for (const name of path.split(".")) {
    const found = fieldsOf(types, type).find((field) => field.name === name);
    if (found === undefined) return place.refuse(`is no field of ${type}`, null);
    type = baseOf(found.type);
  }
  return isAtom(type) ? type : place.refuse(`is the struct ${type}: name one of its fields, as ${path}.field`, null);
}

type TypeAt = (path: string, place: Place) => string | null;

function bound(path: string, place: Place, at: TypeAt): FieldBound {
  const field = place.fields(["in", "min", "max", "withinSeconds"]);
  const type = at(path, place);
  const number = (each: Place) =>
    isNumber(type) ? integer(each) : each.refuse("bounds a field that is no number", 0n);
  const read = {
    in: setOf(field("in").list((each) => allowed(each, type))),
    min: field("min").maybe(number),
    max: field("max").maybe(number),
    withinSeconds: field("withinSeconds").maybe((each) => seconds(each, type)),
  };
  if (Object.values(read).every((each) => each === null)) place.refuse("has none of in, min, max, withinSeconds", null);
  return { path: path.split("."), ...read };
}

const isNumber = (type: string | null) => type === null || /^u?int/.test(type);

function allowed(place: Place, type: string | null): string {
  if (type === null) return "";
  return place.trying("", (words) => String(atomIn(type, place.raw, "", words)));
}

function integer(place: Place): bigint {
  const { raw } = place;
  if (typeof raw === "string" && /^-?\d{1,78}$/.test(raw)) return BigInt(raw);
  return place.refuse('is not a whole number as text, such as "1000000"', 0n);
}

function seconds(place: Place, type: string | null): number {
  const { raw } = place;
  if (type !== null && !type.startsWith("uint")) return place.refuse("bounds a field that is no uint", 0);
  if (typeof raw === "number" && Number.isSafeInteger(raw) && raw > 0 && raw <= A_YEAR_SECONDS) return raw;
  return place.refuse("is not a number of seconds up to a year", 0);
}

function amountLimit(place: Place, at: TypeAt, scope: "signer" | "key"): AmountLimit {
  const field = place.fields(["field", "perSignature", "perHour", "perDay"]);
  const path = String(field("field").raw);
  const type = at(path, field("field"));
  if (type !== null && !type.startsWith("uint")) field("field").refuse("is no uint, so it cannot be counted", null);
  const most = (name: string) => field(name).maybe((each) => amount(each, "an amount"));
  const limits = { perSignature: most("perSignature"), perHour: most("perHour"), perDay: most("perDay") };
  if (scope === "key" && (limits.perHour !== null || limits.perDay !== null))
    place.refuse("counts hours and days for signers only: put perHour and perDay there", null);
  return { path: path.split("."), ...limits };
}

function domainIn(place: Place): TypedDomain {
  const field = place.fields(DOMAIN_FIELDS.map(({ name }) => name));
  const read = DOMAIN_FIELDS.flatMap(({ name, type }) => {
    const each = field(name);
    if (each.raw === undefined) return [];
    return [[name, each.trying("", (words) => String(atomIn(type, each.raw, "", words)))] as const];
  });
  if (read.length === 0) place.refuse("has no field: it would allow the message of every contract", null);
  return Object.fromEntries(read);
}

function personalRule(place: Place, scope: "signer" | "key"): PersonalRule {
  const kinds = ["prefix", "maxLength", "signIn"];
  const field = place.fields([...COMMON, ...kinds]);
  const rule = common(field, scope);
  if (rule.requireApproval !== null && rule.requireApproval.aboveAmount !== null)
    field("requireApproval").refuse("has aboveAmount, but a personal message has no amount", null);
  const named = (name: string) => field(name).raw !== undefined;
  if (named("signIn") === named("prefix")) place.refuse("must have either prefix and maxLength, or signIn", null);
  if (named("signIn")) return { ...rule, signIn: signIn(field("signIn")) };
  return { ...rule, prefix: prefix(field("prefix")), maxLength: maxLength(field("maxLength")) };
}

function prefix(place: Place): string {
  const text = String(place.raw);
  const isPlain = "text" in personalText(`0x${Buffer.from(`${text}\n`).toString("hex")}`) && !looksLikeSignIn(text);
  if (typeof place.raw === "string" && text.length >= SHORTEST_PREFIX && isPlain) return text;
  return place.refuse(`is not plain text of at least ${SHORTEST_PREFIX} characters`, "");
}

function maxLength(place: Place): number {
  const { raw } = place;
  if (typeof raw === "number" && Number.isSafeInteger(raw) && raw > 0 && raw <= LONGEST_MESSAGE) return raw;
  return place.refuse(`is not a number of bytes up to ${LONGEST_MESSAGE}`, 0);
}

function signIn(place: Place) {
  const field = place.fields(["domain", "chainId", "uri", "resources"]);
  const printable = (each: Place) => {
    const text = String(each.raw);
    return typeof each.raw === "string" && /^[\x21-\x7e]+$/.test(text)
      ? text
      : each.refuse("is not printable ASCII", "");
  };
  const resources = new Set(field("resources").list(printable) ?? []);
  return {
    domain: printable(field("domain")),
    chainId: chainId(field("chainId")),
    uri: printable(field("uri")),
    resources,
  };
}
