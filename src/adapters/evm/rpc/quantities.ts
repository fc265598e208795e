import type { Address, Hash, Hex } from "../../../domain/lane.ts";

/** An endpoint's answer is malformed or contradictory. It is treated like no answer: never as NaN or a guess. */
export class BadAnswer extends Error {
  override readonly name = "BadAnswer";
}

const QUANTITY = /^0x[0-9a-fA-F]{1,64}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const BYTES = /^0x(?:[0-9a-fA-F]{2})*$/;

const MOST_GAS = 2n ** 63n - 1n;

export type Fields = Readonly<Record<string, unknown>>;

/** Readers for values of a node's answer. `what` names the value in the error message. */
export const read = {
  bigint: (value: unknown, what: string): bigint => {
    if (typeof value !== "string" || !QUANTITY.test(value)) throw new BadAnswer(`${what} is not a quantity`);
    return BigInt(value);
  },
  number: (value: unknown, what: string): number => {
    const number = Number(read.bigint(value, what));
    if (!Number.isSafeInteger(number)) throw new BadAnswer(`${what} is out of range`);
    return number;
  },
  /** geth counts gas in 64 bits, and the database column holds 63. */
  gas: (value: unknown, what: string): bigint => {
    const gas = read.bigint(value, what);
    if (gas > MOST_GAS) throw new BadAnswer(`${what} is out of range`);
    return gas;
  },
  hash: (value: unknown, what: string): Hash => readHex(value, HASH, what),
  address: (value: unknown, what: string): Address => readHex(value, ADDRESS, what),
  bytes: (value: unknown, what: string): Hex => readHex(value, BYTES, what),
  record: (value: unknown, what: string): Fields => {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
    throw new BadAnswer(`${what} is no object`);
  },
  array: (value: unknown, what: string): readonly unknown[] => {
    if (!Array.isArray(value)) throw new BadAnswer(`${what} is no list`);
    return value;
  },
  /** Null if the value is absent. */
  optional: <T>(as: (value: unknown, what: string) => T, value: unknown, what: string): T | null =>
    value === null || value === undefined ? null : as(value, what),
};

export function isBytes(value: unknown): value is Hex {
  return typeof value === "string" && BYTES.test(value);
}

function readHex(value: unknown, pattern: RegExp, what: string): Hex {
  if (typeof value !== "string" || !pattern.test(value)) throw new BadAnswer(`${what} is not well-formed`);
  return value.toLowerCase() as Hex;
}
