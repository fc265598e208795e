import { getAddress } from "viem/utils";
import type { Address, Hex } from "../../domain/lane.ts";
import { BadEncoding } from "../../ports/codec.ts";

/** A parameter of an ABI, checked: `components` are there exactly where the type is a tuple. */
export interface AbiParameter {
  readonly type: string;
  readonly name?: string;
  readonly components?: readonly AbiParameter[];
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const BYTES = /^0x(?:[0-9a-fA-F]{2})*$/;
const INTEGER = /^(?:-?\d{1,78}|0x[0-9a-fA-F]{1,64})$/;
const ARRAY = /^(.*)\[(\d*)\]$/s;
const INTEGER_TYPE = /^(u?)int(\d*)$/;
const BYTES_TYPE = /^bytes(\d*)$/;
const UNPAIRED_SURROGATE = /\p{Surrogate}/u;

export function parseAddress(text: string, path = ""): Address {
  if (!ADDRESS.test(text)) throw new BadEncoding(path, "is not an address: 0x and 40 hex digits");
  const lower = text.toLowerCase() as Address;
  const digits = text.slice(2);
  const mixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (mixed && getAddress(lower) !== text) throw new BadEncoding(path, "has a wrong EIP-55 checksum");
  return lower;
}

/** JSON as callers write it, turned into what the encoder takes. `path` names the argument in every complaint. */
export function toAbiValue(parameter: AbiParameter, value: unknown, path: string): unknown {
  const array = ARRAY.exec(parameter.type);
  if (array !== null) return toArray({ ...parameter, type: array[1] ?? "" }, array[2] ?? "", { value, path });
  if (parameter.type === "tuple") return toTuple(parameter.components ?? [], value, path);
  if (parameter.type === "address") return parseAddress(requireString(value, path, "an address"), path);
  if (parameter.type === "bool") return toBoolean(value, path);
  if (parameter.type === "string") return toText(value, path);
  const integer = INTEGER_TYPE.exec(parameter.type);
  if (integer !== null) return toInteger({ signed: integer[1] === "", bits: Number(integer[2] || 256) }, value, path);
  const bytes = BYTES_TYPE.exec(parameter.type);
  if (bytes !== null) return toBytes(bytes[1] === "" ? null : Number(bytes[1]), value, path);
  throw new BadEncoding("function", `has a parameter of type ${parameter.type}, which is not known`);
}

function toArray(
  element: AbiParameter,
  length: string,
  { value, path }: { readonly value: unknown; readonly path: string },
): readonly unknown[] {
  if (!Array.isArray(value)) throw new BadEncoding(path, "must be a list");
  if (length !== "" && value.length !== Number(length)) throw new BadEncoding(path, `must have ${length} elements`);
  return value.map((each, index) => toAbiValue(element, each, `${path}.${index}`));
}

/** A tuple as a list in order, or as an object by name. Always a list for the encoder: names may be missing or repeated. */
function toTuple(components: readonly AbiParameter[], value: unknown, path: string): unknown {
  const values = Array.isArray(value) ? value : valuesByName(components, value, path);
  if (values.length !== components.length) throw new BadEncoding(path, `must have ${components.length} members`);
  return components.map((component, index) => toAbiValue(component, values[index], `${path}.${index}`));
}

function valuesByName(components: readonly AbiParameter[], value: unknown, path: string): readonly unknown[] {
  if (typeof value !== "object" || value === null) throw new BadEncoding(path, "must be a list or an object");
  const names = components.map((component) => component.name ?? "");
  const unknown = Object.keys(value).find((key) => !names.includes(key));
  if (unknown !== undefined) throw new BadEncoding(`${path}.${unknown}`, "is no member of this tuple");
  return names.map((name) => {
    if (!Object.hasOwn(value, name)) throw new BadEncoding(`${path}.${name}`, "is missing");
    return (value as Record<string, unknown>)[name];
  });
}

function toInteger(type: { readonly signed: boolean; readonly bits: number }, value: unknown, path: string): bigint {
  const integer = parseInteger(value, path);
  const limit = 1n << BigInt(type.signed ? type.bits - 1 : type.bits);
  if (integer >= limit || integer < (type.signed ? -limit : 0n)) {
    throw new BadEncoding(path, `is out of the range of ${type.signed ? "int" : "uint"}${type.bits}`);
  }
  return integer;
}

function parseInteger(value: unknown, path: string): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "string" && INTEGER.test(value)) return BigInt(value);
  throw new BadEncoding(path, "must be a whole number: a decimal string, 0x hex, or a safe integer");
}

function toBytes(length: number | null, value: unknown, path: string): Hex {
  const text = requireString(value, path, "0x hex");
  if (!BYTES.test(text)) throw new BadEncoding(path, "must be 0x and an even number of hex digits");
  if (length !== null && text.length !== 2 + length * 2) throw new BadEncoding(path, `must have ${length} bytes`);
  return text.toLowerCase() as Hex;
}

/** Half a surrogate pair has no UTF-8: it would be signed as U+FFFD, which is not what was asked for. */
function toText(value: unknown, path: string): string {
  const text = requireString(value, path, "a string");
  if (UNPAIRED_SURROGATE.test(text)) throw new BadEncoding(path, "must not contain unpaired surrogates");
  return text;
}

function toBoolean(value: unknown, path: string): boolean {
  if (typeof value !== "boolean") throw new BadEncoding(path, "must be true or false");
  return value;
}

function requireString(value: unknown, path: string, what: string): string {
  if (typeof value !== "string") throw new BadEncoding(path, `must be ${what}`);
  return value;
}
