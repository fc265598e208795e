// @ts-check
import { keccak256 } from "../../threads/keccak.js";
import { read } from "../../threads/read.js";
import { bytes, EMPTY, integerFromHex } from "../../threads/rlp.js";

/**
 * RLP encoding of fields of blocks, transactions and receipts in JSON-RPC form. A field in another form has no known
 * encoding and throws `BadAnswer`, which means that nothing is proved or contradicted.
 *
 * @typedef {Readonly<Record<string, unknown>>} Fields
 */

/** Reads an object. @param {unknown} value */
export const fieldsOf = (value) => read.record(value, "it");

/** Reads a list. @param {unknown} value */
export const listOf = (value) => read.array(value, "it");

/** Reads hex text. @param {unknown} value @returns {string} lower case, with prefix */
export const textOf = (value) => read.bytes(value, "a field");

/** Reads a number in hex. @param {unknown} value */
export const numberOf = (value) => read.bigint(value, "a field");

/** Encodes bytes, given as hex text. @param {unknown} value */
export const data = (value) => bytes(textOf(value));

/** Encodes a number, given as a JSON-RPC quantity. @param {unknown} value */
export const quantity = (value) => integerFromHex(read.quantity(value, "a field").slice(2));

/** Encodes the receiver of a transaction, which is absent for a contract creation. @param {unknown} value */
export const receiver = (value) => (value === null || value === undefined ? EMPTY : data(value));

/** True if the value is neither null nor undefined. @param {unknown} value */
export const isPresent = (value) => value !== null && value !== undefined;

/** Hashes bytes with Keccak-256. @param {string} hex without prefix @returns {string} hex without prefix */
export const keccak = (hex) => Buffer.from(keccak256(Buffer.from(hex, "hex"))).toString("hex");
