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

/** @param {unknown} value */
export const fieldsOf = (value) => read.record(value, "it");

/** @param {unknown} value */
export const listOf = (value) => read.array(value, "it");

/** @param {unknown} value @returns {string} lower case, with prefix */
export const textOf = (value) => read.bytes(value, "a field");

/** @param {unknown} value */
export const numberOf = (value) => read.bigint(value, "a field");

/** @param {unknown} value */
export const data = (value) => bytes(textOf(value));

/** @param {unknown} value */
export const quantity = (value) => integerFromHex(read.quantity(value, "a field").slice(2));

/** Encodes the receiver of a transaction, which is absent for a contract creation. @param {unknown} value */
export const receiver = (value) => (value === null || value === undefined ? EMPTY : data(value));

/** @param {unknown} value */
export const isPresent = (value) => value !== null && value !== undefined;

/** @param {string} hex without prefix @returns {string} hex without prefix */
export const keccak = (hex) => Buffer.from(keccak256(Buffer.from(hex, "hex"))).toString("hex");
