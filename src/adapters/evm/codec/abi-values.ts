import { getAddress } from "viem/utils";
import type { Address, Hex } from "../../../domain/lane.ts";
import { BadEncoding } from "../../../ports/codec.ts";

/** A validated ABI parameter. `components` is present if and only if the type is a tuple. */
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

/**
 * Converts a caller's JSON value to the value that viem's encoder takes. `path` names the argument in error messages.
 */
export function toAbiValue(parameter: AbiParameter, value: unknown, path: string): unknown {
  const { type } = parameter;
  const place = { parameter, value, path };
  const array = ARRAY.exec(type);
  if (array !== null) return toArray(place, array[1] ?? "", array[2] ?? "");
  if (type === "tuple") return toTuple(place, parameter.components ?? []);
  if (type === "address") return toAddress(place);
  if (type === "bool") return toBoolean(place);
  if (type === "string") return toText(place);
  const integer = INTEGER_TYPE.exec(type);
  if (integer !== null) return toInteger(place, integer[1] === "", Number(integer[2] || 256));
  const bytes = BYTES_TYPE.exec(type);
  if (bytes !== null) return toBytes(place, bytes[1] === "" ? null : Number(bytes[1]));
  throw new BadEncoding("function", `has a parameter of type ${type}, which is not known`);
}

/** A value to convert: its ABI parameter, the value itself, and its path for error messages. */
interface Place {
  readonly parameter: AbiParameter;
  readonly value: unknown;
  readonly path: string;
}

/** Formats a refusal: argument name, type, rule, and the given value: "amount (uint256) must …; given "x"". */
function refuse({ parameter, value, path }: Place, what: string) {
  const { name = "", type } = parameter;
  return new BadEncoding(path, `${name === "" ? type : `${name} (${type})`} ${what}; given ${shown(value)}`);
}

/**
 * Longest string that an error message shows; longer ones are shown by length only. A truncated secret would not match
 * the mask's patterns and would leak.
 */
const LONGEST_SHOWN = 42;

function shown(value: unknown) {
  if (typeof value === "string") {
    return value.length > LONGEST_SHOWN ? `a string of ${value.length} characters` : JSON.stringify(value);
  }
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  return value === undefined ? "nothing" : String(value);
}

function toArray(place: Place, element: string, length: string): readonly unknown[] {
  const { parameter, value, path } = place;
  if (!Array.isArray(value)) throw refuse(place, "must be a list");
  if (length !== "" && value.length !== Number(length)) throw refuse(place, `must have ${length} elements`);
  return value.map((each, index) => toAbiValue({ ...parameter, type: element }, each, `${path}.${index}`));
}

/**
 * Accepts a tuple as a list in order, or as an object by name. The encoder always gets a list: ABI names may be missing
 * or repeated.
 */
function toTuple(place: Place, components: readonly AbiParameter[]): unknown {
  const { value, path } = place;
  const values = Array.isArray(value) ? value : valuesByName(place, components);
  if (values.length !== components.length) throw refuse(place, `must have ${components.length} members`);
  return components.map((component, index) => toAbiValue(component, values[index], `${path}.${index}`));
}

function valuesByName(place: Place, components: readonly AbiParameter[]): readonly unknown[] {
  const { value, path } = place;
  if (typeof value !== "object" || value === null) throw refuse(place, "must be a list or an object");
  const names = components.map((component) => component.name ?? "");
  const unknown = Object.keys(value).find((key) => !names.includes(key));
  if (unknown !== undefined) {
    throw new BadEncoding(`${path}.${unknown}`, `is no member of this tuple, which has ${names.join(", ")}`);
  }
  return components.map(({ name = "", type }) => {
    if (!Object.hasOwn(value, name)) throw new BadEncoding(`${path}.${name}`, `is missing (${type})`);
    return (value as Record<string, unknown>)[name];
  });
}

function toAddress(place: Place) {
  const { value, path } = place;
  if (typeof value !== "string" || !ADDRESS.test(value)) {
    throw refuse(place, "must be an address: 0x and 40 hex digits");
  }
  return parseAddress(value, path);
}

function toInteger(place: Place, signed: boolean, bits: number) {
  const integer = parseInteger(place);
  const limit = 1n << BigInt(signed ? bits - 1 : bits);
  if (integer >= limit || integer < (signed ? -limit : 0n)) {
    throw refuse(place, `is out of range: ${signed ? `-2^${bits - 1} to 2^${bits - 1} - 1` : `0 to 2^${bits} - 1`}`);
  }
  return integer;
}

function parseInteger(place: Place) {
  const { value } = place;
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "string" && INTEGER.test(value)) return BigInt(value);
  throw refuse(place, "must be a whole number: a decimal string, 0x hex, or an integer up to 2^53 - 1");
}

function toBytes(place: Place, length: number | null) {
  const { value } = place;
  if (typeof value !== "string" || !BYTES.test(value)) {
    throw refuse(place, "must be 0x and an even number of hex digits");
  }
  if (length !== null && value.length !== 2 + length * 2) {
    throw refuse(place, `must have ${length} bytes, not ${(value.length - 2) / 2}`);
  }
  return value.toLowerCase() as Hex;
}

/**
 * Converts a string argument. An unpaired surrogate is refused: it has no UTF-8 encoding, so the encoder would sign
 * U+FFFD instead.
 */
function toText(place: Place) {
  const { value } = place;
  if (typeof value !== "string") throw refuse(place, "must be a string");
  if (UNPAIRED_SURROGATE.test(value)) throw refuse(place, "must not contain unpaired surrogates");
  return value;
}

function toBoolean(place: Place) {
  if (typeof place.value !== "boolean") throw refuse(place, "must be true or false, without quotes");
  return place.value;
}
