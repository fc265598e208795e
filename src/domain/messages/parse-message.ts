/**
 * Parses a caller's message into its normal form. Everything that two encoders may read differently is refused: unknown
 * or missing members, types that contain themselves, text without a UTF-8 encoding, integers in other notations.
 */
import { invalid } from "../errors.ts";
import type { Address, Hex } from "../lane.ts";
import {
  baseOf,
  DOMAIN_FIELDS,
  domainFields,
  elementOf,
  fieldsOf,
  type PersonalMessage,
  type StructValue,
  structsOf,
  type TypedData,
  type TypedDomain,
  type TypedField,
  type TypedValue,
  type Types,
} from "./message.ts";

/** Parser of addresses; throws with a reason. */
export interface MessageWords {
  parseAddress(text: string): Address;
}

/** Typed data in the format of `eth_signTypedData_v4`. */
export interface AskedTypedData {
  readonly domain: unknown;
  readonly types: unknown;
  readonly primaryType: unknown;
  readonly message: unknown;
}

const MOST_BYTES = 65_536;
const MOST_TYPES = 64;
const MOST_FIELDS = 256;
const DEEPEST = 16;
const MOST_VALUES = 4_096;

const NAME = /^(?!__proto__$)[A-Za-z_$][A-Za-z0-9_$]{0,99}$/;
const BRACKETS = /^(?:\[(?:[1-9]\d{0,3})?\])*$/;
const ATOM = /^(?:address|bool|string|bytes|bytes(?:[1-9]|[12]\d|3[0-2])|u?int(\d{1,3}))$/;
/** Names that a struct must not have: a reader would take it for the type of Solidity. */
const BUILT_IN = /^(?:address|bool|string|bytes\d*|u?int\d*|u?fixed.*|function|tuple|mapping|EIP712Domain)$/;
const INTEGER = /^(?:-?\d{1,78}|0x[0-9a-fA-F]{1,64})$/;
const BYTES = /^0x(?:[0-9a-fA-F]{2})*$/;
const NOT_STORABLE = /[\p{Surrogate}\0]/u;

/** Parses the message of `personal_sign`: text, or bytes as hex. */
export function parsePersonal(asked: string | { readonly raw: string }): PersonalMessage {
  if (typeof asked !== "string") return personal(lowerBytes(asked.raw, "message.raw"));
  if (/\p{Surrogate}/u.test(asked)) throw invalid("message", "must not contain unpaired surrogates");
  return personal(`0x${Buffer.from(asked).toString("hex")}`);
}

function personal(bytes: Hex): PersonalMessage {
  if (bytes.length > 2 + 2 * MOST_BYTES) throw invalid("message", `is longer than ${MOST_BYTES} bytes`);
  return { kind: "personal", bytes };
}

/** Parses typed data. `path` names it in error messages. */
export function parseTypedData(asked: AskedTypedData, words: MessageWords, path = "typedData"): TypedData {
  const domain = domainIn(asked.domain, words, `${path}.domain`);
  const { EIP712Domain, ...structs } = record(asked.types, `${path}.types`);
  if (EIP712Domain !== undefined) checkDomainType(domain, EIP712Domain, `${path}.types.EIP712Domain`);
  const all = typesIn(structs, `${path}.types`);
  const { primaryType } = asked;
  if (typeof primaryType !== "string" || !Object.hasOwn(all, primaryType))
    throw invalid(`${path}.primaryType`, "must name one of the types; the domain alone is not signed");
  const types = Object.fromEntries([...structsOf(all, primaryType)].map((name) => [name, fieldsOf(all, name)]));
  checkKnown(types, `${path}.types`);
  const reader = new ValueReader(types, words);
  return {
    kind: "typedData",
    domain,
    types,
    primaryType,
    value: reader.struct(primaryType, asked.message, [`${path}.message`]),
  };
}

function domainIn(asked: unknown, words: MessageWords, path: string): TypedDomain {
  const said = record(asked, path);
  const unknown = Object.keys(said).find((name) => !DOMAIN_FIELDS.some((field) => field.name === name));
  if (unknown !== undefined) throw invalid(`${path}.${unknown.slice(0, 40)}`, "is no field of an EIP-712 domain");
  const present = DOMAIN_FIELDS.filter(({ name }) => said[name] !== undefined);
  if (present.length === 0) throw invalid(path, "must have at least one field");
  const fields = Object.fromEntries(present.map(({ name }) => [name, said[name]]));
  return new ValueReader({ EIP712Domain: present }, words).struct("EIP712Domain", fields, [path]) as TypedDomain;
}

/** A domain type that differs from the domain's fields would give another digest in some wallets. */
function checkDomainType(domain: TypedDomain, asked: unknown, path: string): void {
  const said = fieldsIn(asked, path);
  const own = domainFields(domain);
  const same =
    said.length === own.length && own.every(({ name, type }, at) => said[at]?.name === name && said[at]?.type === type);
  const wanted = own.map(({ name, type }) => `${type} ${name}`).join(", ");
  if (!same) throw invalid(path, `must have exactly the domain's fields, in the order of EIP-712: ${wanted}`);
}

function typesIn(asked: Readonly<Record<string, unknown>>, path: string): Types {
  const entries = Object.entries(asked);
  if (entries.length > MOST_TYPES) throw invalid(path, `has more than ${MOST_TYPES} types`);
  const types = entries.map(([name, fields]) => {
    if (!NAME.test(name))
      throw invalid(path, "has a type whose name is not a Solidity identifier of up to 100 characters");
    if (BUILT_IN.test(name)) throw invalid(`${path}.${name}`, "redefines a built-in type");
    return [name, fieldsIn(fields, `${path}.${name}`)] as const;
  });
  const total = types.reduce((sum, [, fields]) => sum + fields.length, 0);
  if (total > MOST_FIELDS) throw invalid(path, `has more than ${MOST_FIELDS} fields`);
  return Object.fromEntries(types);
}

/** True for a name that a struct may have: a Solidity identifier that is no built-in type. */
export function isStructName(name: string): boolean {
  return NAME.test(name) && !BUILT_IN.test(name);
}

function fieldsIn(asked: unknown, path: string): readonly TypedField[] {
  if (!Array.isArray(asked)) throw invalid(path, "must be a list of fields");
  const seen = new Set<string>();
  return asked.map((each: unknown, index) => {
    const { name, type, ...more } = record(each, `${path}.${index}`);
    if (typeof name !== "string" || !NAME.test(name))
      throw invalid(`${path}.${index}.name`, "is not a Solidity identifier of up to 100 characters");
    if (typeof type !== "string" || type.length > 200) throw invalid(`${path}.${index}.type`, "is not a type");
    if (Object.keys(more).length > 0)
      throw invalid(`${path}.${index}`, "must have a name and a type, and nothing else");
    if (seen.has(name)) throw invalid(`${path}.${index}.name`, "occurs twice");
    seen.add(name);
    return { name, type };
  });
}

/** Refuses types that are not known, and structs that contain themselves: no value of finite size has them all. */
function checkKnown(types: Types, path: string): void {
  const done = new Set<string>();
  const open = new Set<string>();
  const visit = (name: string) => {
    if (done.has(name)) return;
    if (open.has(name)) throw invalid(`${path}.${name}`, "contains itself");
    open.add(name);
    for (const [index, { type }] of fieldsOf(types, name).entries()) {
      const base = baseOf(type);
      if (!BRACKETS.test(type.slice(base.length))) throw invalid(`${path}.${name}.${index}.type`, "is not a type");
      if (Object.hasOwn(types, base)) visit(base);
      else if (!isAtom(base))
        throw invalid(`${path}.${name}.${index}.type`, "is neither a type of EIP-712 nor one of the structs");
    }
    open.delete(name);
    done.add(name);
  };
  for (const name of Object.keys(types)) visit(name);
}

/** True for the types that need no definition. `uint` and `int` have no bits, so encoders disagree about them. */
export function isAtom(type: string): boolean {
  const match = ATOM.exec(type);
  if (match === null) return false;
  if (match[1] === undefined) return true;
  const bits = Number(match[1]);
  return !match[1].startsWith("0") && bits % 8 === 0 && bits >= 8 && bits <= 256;
}

/** Reads values by their types. Its bounds keep a request from growing in memory beyond what its bytes hold. */
class ValueReader {
  private left = MOST_VALUES;
  private readonly types: Types;
  private readonly words: MessageWords;

  constructor(types: Types, words: MessageWords) {
    this.types = types;
    this.words = words;
  }

  struct(name: string, asked: unknown, path: readonly (string | number)[]): StructValue {
    const said = record(asked, path.join("."));
    const fields = fieldsOf(this.types, name);
    const extra = Object.keys(said).find((key) => !fields.some((field) => field.name === key));
    if (extra !== undefined) throw invalid([...path, extra.slice(0, 40)].join("."), `is no member of ${name}`);
    return Object.fromEntries(
      fields.map((field) => [field.name, this.read(field.type, said[field.name], [...path, field.name])]),
    );
  }

  private read(type: string, asked: unknown, path: readonly (string | number)[]): TypedValue {
    this.left--;
    if (this.left < 0) throw invalid(path.join("."), `is beyond the ${MOST_VALUES} values that a message may have`);
    if (path.length > DEEPEST) throw invalid(path.join("."), `is nested deeper than ${DEEPEST} levels`);
    const array = elementOf(type);
    if (array !== null) return this.list(array, asked, path);
    if (Object.hasOwn(this.types, type)) return this.struct(type, asked, path);
    return atomIn(type, asked, path.join("."), this.words);
  }

  private list(
    { element, length }: { element: string; length: number | null },
    asked: unknown,
    path: readonly (string | number)[],
  ) {
    if (!Array.isArray(asked)) throw invalid(path.join("."), "must be a list");
    if (length !== null && asked.length !== length) throw invalid(path.join("."), `must have ${length} elements`);
    return asked.map((each: unknown, index) => this.read(element, each, [...path, index]));
  }
}

/** Reads a value of a type without members into its normal form. */
export function atomIn(type: string, asked: unknown, path: string, words: MessageWords): string | boolean {
  if (type === "bool") {
    if (typeof asked !== "boolean") throw invalid(path, "must be true or false, without quotes");
    return asked;
  }
  if (type === "string") return textIn(asked, path);
  if (type === "address") return addressIn(asked, path, words);
  if (type.startsWith("bytes")) return bytesIn(asked, type.slice("bytes".length), path);
  return integerIn(asked, type, path).toString();
}

function textIn(asked: unknown, path: string): string {
  if (typeof asked !== "string") throw invalid(path, "must be a string");
  if (NOT_STORABLE.test(asked)) throw invalid(path, "must not contain NUL or unpaired surrogates");
  return asked;
}

function addressIn(asked: unknown, path: string, words: MessageWords): Address {
  if (typeof asked !== "string") throw invalid(path, "must be an address: 0x and 40 hex digits");
  try {
    return words.parseAddress(asked);
  } catch {
    throw invalid(path, "must be an address: 0x and 40 hex digits; with mixed case, the checksum of EIP-55");
  }
}

function bytesIn(asked: unknown, length: string, path: string): Hex {
  const bytes = lowerBytes(asked, path);
  if (length !== "" && bytes.length !== 2 + 2 * Number(length))
    throw invalid(path, `must have exactly ${length} bytes`);
  return bytes;
}

function lowerBytes(asked: unknown, path: string): Hex {
  if (typeof asked !== "string" || !BYTES.test(asked))
    throw invalid(path, "must be 0x and an even number of hex digits");
  return asked.toLowerCase() as Hex;
}

function integerIn(asked: unknown, type: string, path: string): bigint {
  const value = parsedInteger(asked);
  const signed = type.startsWith("int");
  const bits = BigInt(type.slice(signed ? 3 : 4));
  const limit = 1n << (signed ? bits - 1n : bits);
  if (value === null) throw invalid(path, "must be a whole number: decimal text, 0x hex, or an integer up to 2^53 - 1");
  if (value >= limit || value < (signed ? -limit : 0n)) throw invalid(path, `is out of range for ${type}`);
  return value;
}

function parsedInteger(asked: unknown): bigint | null {
  if (typeof asked === "bigint") return asked;
  if (typeof asked === "number") return Number.isSafeInteger(asked) ? BigInt(asked) : null;
  return typeof asked === "string" && INTEGER.test(asked) ? BigInt(asked) : null;
}

function record(asked: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof asked !== "object" || asked === null || Array.isArray(asked)) throw invalid(path, "must be an object");
  return asked as Readonly<Record<string, unknown>>;
}
