// @ts-check
import { keccak256 } from "../../threads/keccak.js";
import { bytes, EMPTY, integerFromHex } from "../../threads/rlp.js";

/**
 * RLP of fields of blocks, transactions and receipts in JSON-RPC form. A field of another form has no known encoding:
 * `NotEncodable` means that nothing is proved or contradicted.
 *
 * @typedef {Readonly<Record<string, unknown>>} Fields
 */

export class NotEncodable extends Error {}

const QUANTITY = /^0x[0-9a-fA-F]{1,64}$/;
const DATA = /^0x(?:[0-9a-fA-F]{2})*$/;

/** @param {unknown} value @returns {Fields} */
export function fieldsOf(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new NotEncodable("it is no object");
  return /** @type {Fields} */ (value);
}

/** @param {unknown} value @returns {readonly unknown[]} */
export function listOf(value) {
  if (!Array.isArray(value)) throw new NotEncodable("it is no list");
  return value;
}

/** @param {unknown} value @returns {string} lower case, with prefix */
export function textOf(value) {
  if (typeof value !== "string" || !DATA.test(value)) throw new NotEncodable("a field holds no bytes");
  return value.toLowerCase();
}

/** @param {unknown} value @returns {bigint} */
export function numberOf(value) {
  if (typeof value !== "string" || !QUANTITY.test(value)) throw new NotEncodable("a field holds no quantity");
  return BigInt(value);
}

/** @param {unknown} value */
export const data = (value) => bytes(textOf(value));

/** @param {unknown} value */
export function quantity(value) {
  if (typeof value !== "string" || !QUANTITY.test(value)) throw new NotEncodable("a field holds no quantity");
  return integerFromHex(value.slice(2).toLowerCase());
}

/** Absent for a contract creation. @param {unknown} value */
export const receiver = (value) => (value === null || value === undefined ? EMPTY : data(value));

/** @param {unknown} value */
export const isPresent = (value) => value !== null && value !== undefined;

/** @param {string} hex without prefix @returns {string} hex without prefix */
export const keccak = (hex) => Buffer.from(keccak256(Buffer.from(hex, "hex"))).toString("hex");
