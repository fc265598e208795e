/**
 * A message that a key signs beside its transactions: a personal message (EIP-191, version 0x45) or typed data
 * (EIP-712). Both are kept in one normal form, so that a rule, the digest and the audit all judge the same values.
 */
import type { Address, Hash, Hex } from "../lane.ts";

/** Bytes that `personal_sign` signs, without the prefix of EIP-191. */
export interface PersonalMessage {
  readonly kind: "personal";
  readonly bytes: Hex;
}

/** Fields of an EIP-712 domain. A field that is absent is no part of the domain's type. */
export interface TypedDomain {
  readonly name?: string | undefined;
  readonly version?: string | undefined;
  /** Decimal text. */
  readonly chainId?: string | undefined;
  readonly verifyingContract?: Address | undefined;
  readonly salt?: Hash | undefined;
}

/** Fields of a domain with their types, in the only order in which EIP-712 encodes them. */
export const DOMAIN_FIELDS = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
  { name: "salt", type: "bytes32" },
] as const satisfies readonly TypedField[];

export interface TypedField {
  readonly name: string;
  readonly type: string;
}

/** Struct types by name. None contains itself, and `EIP712Domain` is not one of them. */
export type Types = Readonly<Record<string, readonly TypedField[]>>;

/**
 * A value in normal form: integers as decimal text, addresses and bytes as lower-case hex, strings unchanged, booleans,
 * lists, and structs with exactly the members of their type.
 */
export type TypedValue = string | boolean | readonly TypedValue[] | { readonly [name: string]: TypedValue };

export type StructValue = { readonly [name: string]: TypedValue };

export interface TypedData {
  readonly kind: "typedData";
  readonly domain: TypedDomain;
  /** The primary type and the structs that it needs; no others. */
  readonly types: Types;
  readonly primaryType: string;
  readonly value: StructValue;
}

export type Message = PersonalMessage | TypedData;

/** A message with its digest: what a key holder gets. It may compute the digest again, and must if it checks rules. */
export interface MessageToSign {
  readonly chainId: number;
  readonly message: Message;
  readonly digest: Hash;
}

const ARRAY = /^(.*)\[(\d*)\]$/;

/** Splits the last brackets from an array type: `A[2][]` is a list of `A[2]`. Null for any other type. */
export function elementOf(type: string): { readonly element: string; readonly length: number | null } | null {
  const [, element, length] = ARRAY.exec(type) ?? [];
  if (element === undefined) return null;
  return { element, length: length === undefined || length === "" ? null : Number(length) };
}

/** Name of the type without its brackets. */
export function baseOf(type: string): string {
  const bracket = type.indexOf("[");
  return bracket === -1 ? type : type.slice(0, bracket);
}

/** Names of the structs that a struct needs, itself included: each once, whatever the number of paths to it. */
export function structsOf(types: Types, primaryType: string): ReadonlySet<string> {
  const found = new Set([primaryType]);
  for (const name of found) {
    for (const { type } of fieldsOf(types, name)) if (Object.hasOwn(types, baseOf(type))) found.add(baseOf(type));
  }
  return found;
}

/** Fields of a struct; none if the types do not have it. A name such as `constructor` is not looked up in prototypes. */
export function fieldsOf(types: Types, name: string): readonly TypedField[] {
  return Object.hasOwn(types, name) ? (types[name] ?? []) : [];
}

/** The type of a struct as EIP-712 encodes it: the struct first, then those that it needs, sorted by name. */
export function encodeType(types: Types, primaryType: string): string {
  const [, ...needed] = structsOf(types, primaryType);
  return [primaryType, ...needed.sort()].map((name) => `${name}(${members(fieldsOf(types, name))})`).join("");
}

const members = (fields: readonly TypedField[]) => fields.map(({ name, type }) => `${type} ${name}`).join(",");

/** Fields that this domain has, in the order of EIP-712. */
export function domainFields(domain: TypedDomain): readonly TypedField[] {
  return DOMAIN_FIELDS.filter(({ name }) => domain[name] !== undefined);
}
