import type { Address, Hash, Hex } from "../../../domain/lane.ts";

/** An endpoint answered with something that cannot be true. Worth no more than no answer; never NaN, never a guess. */
export class BadAnswer extends Error {
  override readonly name = "BadAnswer";
}

const QUANTITY = /^0x[0-9a-fA-F]{1,64}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const BYTES = /^0x(?:[0-9a-fA-F]{2})*$/;

export function readBigInt(value: unknown, what: string): bigint {
  if (typeof value !== "string" || !QUANTITY.test(value)) throw new BadAnswer(`${what} is not a quantity`);
  return BigInt(value);
}

export function readNumber(value: unknown, what: string): number {
  const number = Number(readBigInt(value, what));
  if (!Number.isSafeInteger(number)) throw new BadAnswer(`${what} is out of range`);
  return number;
}

const MOST_GAS = 2n ** 63n - 1n;

/** What no chain can have spent is no amount of gas; geth counts it in 64 bits, and a row keeps 63 of them. */
export function readGas(value: unknown, what: string): bigint {
  const gas = readBigInt(value, what);
  if (gas > MOST_GAS) throw new BadAnswer(`${what} is out of range`);
  return gas;
}

export function readHash(value: unknown, what: string): Hash {
  return readHex(value, HASH, what);
}

export function readAddress(value: unknown, what: string): Address {
  return readHex(value, ADDRESS, what);
}

export function readBytes(value: unknown, what: string): Hex {
  return readHex(value, BYTES, what);
}

export function isBytes(value: unknown): value is Hex {
  return typeof value === "string" && BYTES.test(value);
}

export function readRecord(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new BadAnswer(`${what} is no object`);
  return value as Readonly<Record<string, unknown>>;
}

export function readArray(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new BadAnswer(`${what} is no list`);
  return value;
}

/** Null where it is left out. */
export function optional<T>(read: (value: unknown, what: string) => T, value: unknown, what: string): T | null {
  return value === null || value === undefined ? null : read(value, what);
}

function readHex(value: unknown, pattern: RegExp, what: string): Hex {
  if (typeof value !== "string" || !pattern.test(value)) throw new BadAnswer(`${what} is not well-formed`);
  return value.toLowerCase() as Hex;
}
