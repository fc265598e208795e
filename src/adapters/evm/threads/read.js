// @ts-check

/**
 * Readers for values in a node's response. `what` names the value in the error message.
 *
 * @typedef {Readonly<Record<string, unknown>>} Fields
 * @typedef {`0x${string}`} Hex
 */

/**
 * @template T
 * @typedef {(value: unknown, what: string) => T} Reader
 */

/**
 * An endpoint's response is malformed or contradictory. It is treated like a missing response, never as NaN or a guess.
 */
export class BadAnswer extends Error {
  /** @override */
  name = "BadAnswer";
}

const QUANTITY = /^0x[0-9a-fA-F]{1,64}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const BYTES = /^0x(?:[0-9a-fA-F]{2})*$/;

const MOST_GAS = 2n ** 63n - 1n;

/**
 * Makes a reader of hex text that matches a pattern. @param {RegExp} pattern @param {string} complaint @returns
 * {Reader<Hex>}
 */
function hexReader(pattern, complaint) {
  return (value, what) => {
    if (typeof value !== "string" || !pattern.test(value)) throw new BadAnswer(`${what} is not ${complaint}`);
    return /** @type {Hex} */ (value.toLowerCase());
  };
}

const quantity = hexReader(QUANTITY, "a quantity");

/** @type {Reader<bigint>} */
const bigint = (value, what) => BigInt(quantity(value, what));

export const read = {
  quantity,
  bigint,
  hash: hexReader(HASH, "well-formed"),
  address: hexReader(ADDRESS, "well-formed"),
  bytes: hexReader(BYTES, "well-formed"),
  /** @type {Reader<number>} */
  number(value, what) {
    const number = Number(quantity(value, what));
    if (!Number.isSafeInteger(number)) throw new BadAnswer(`${what} is out of range`);
    return number;
  },
  /** Reads an amount of gas. geth counts gas in 64 bits, but the database column holds 63. @type {Reader<bigint>} */
  gas(value, what) {
    const gas = bigint(value, what);
    if (gas > MOST_GAS) throw new BadAnswer(`${what} is out of range`);
    return gas;
  },
  /** @type {Reader<Fields>} */
  record(value, what) {
    if (isRecord(value)) return value;
    throw new BadAnswer(`${what} is no object`);
  },
  /** @type {Reader<readonly unknown[]>} */
  array(value, what) {
    if (!Array.isArray(value)) throw new BadAnswer(`${what} is no list`);
    return value;
  },
  /**
   * Makes a reader that returns null if the value is absent.
   *
   * @template T
   * @param {Reader<T>} as
   * @returns {Reader<T | null>}
   */
  optional: (as) => (value, what) => (value === null || value === undefined ? null : as(value, what)),
};

/**
 * Reads members of one object in a response; errors name the object and the member.
 *
 * @param {Fields} fields
 * @param {string} what
 * @returns {<T>(as: Reader<T>, name: string) => T}
 */
export const memberReader = (fields, what) => (as, name) => as(fields[name], `${what}.${name}`);

/** True if the value is hex text of whole bytes with prefix. @param {unknown} value @returns {value is Hex} */
export const isBytes = (value) => typeof value === "string" && BYTES.test(value);

/** True if the value is an object and not a list. @param {unknown} value @returns {value is Fields} */
export const isRecord = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
