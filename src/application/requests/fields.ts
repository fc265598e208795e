/**
 * Stage 1: the smallest pieces of a request, each refused by its path.
 * Reads: one value. Writes: nothing. A crash here leaves nothing behind.
 */
import { invalid } from "../../domain/errors.ts";
import type { Address, Hash, Hex } from "../../domain/lane.ts";
import { BadEncoding, type Codec } from "../../ports/codec.ts";

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const MAX_UINT256 = (1n << 256n) - 1n;

export function join(path: string, key: string | number): string {
  return path === "" ? String(key) : `${path}.${key}`;
}

export function asObject(value: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(path, "must be an object");
  return value as Record<string, unknown>;
}

export function refuseUnknownKeys(object: object, known: readonly string[], path: string): void {
  for (const key of Object.keys(object)) {
    if (!known.includes(key)) throw invalid(join(path, key), "is not a known field");
  }
}

/** What may be left out. */
export function given<T, U>(value: T | undefined, parse: (value: T) => U): U | undefined {
  return value === undefined ? undefined : parse(value);
}

/** Decimal string, 0x hex, safe integer, or (inside a process) bigint. */
export function parseQuantity(value: unknown, path: string, most: bigint = MAX_UINT256): bigint {
  const quantity = toBigInt(value, path);
  if (quantity < 0n) throw invalid(path, "must not be negative");
  if (quantity > most) throw invalid(path, `must be at most ${most === MAX_UINT256 ? "2^256 - 1" : most}`);
  return quantity;
}

export function optionalQuantity(value: unknown, path: string, most?: bigint): bigint | undefined {
  return value === undefined || value === null ? undefined : parseQuantity(value, path, most);
}

function toBigInt(value: unknown, path: string): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value))
      throw invalid(path, "must be a whole number up to 2^53 - 1; write larger ones as strings");
    return BigInt(value);
  }
  if (typeof value === "string" && value.length <= 80) {
    if (/^-?(0|[1-9][0-9]*)$/.test(value) || /^0x[0-9a-fA-F]+$/.test(value)) return BigInt(value);
  }
  throw invalid(path, "must be a decimal string, 0x hex or a safe integer");
}

/** What the codec refuses, by the path of the field it was given. */
export function encoded<T>(path: string, encode: () => T): T {
  try {
    return encode();
  } catch (error) {
    if (error instanceof BadEncoding) throw invalid(error.path === "" ? path : join(path, error.path), error.message);
    throw error;
  }
}

export function parseAddress(codec: Codec, value: unknown, path: string): Address {
  if (typeof value !== "string") throw invalid(path, "must be an address");
  return encoded(path, () => codec.parseAddress(value));
}

export function parseHash(value: unknown, path: string): Hash {
  const hash = parseHex(value, path);
  if (hash.length !== 66) throw invalid(path, "must be 32 bytes");
  return hash;
}

export function parseHex(value: unknown, path: string): Hex {
  if (typeof value !== "string" || !/^0x[0-9a-fA-F]*$/.test(value)) throw invalid(path, "must be 0x hex");
  if (value.length % 2 !== 0) throw invalid(path, "must have an even number of hex digits");
  return value.toLowerCase() as Hex;
}
