// @ts-check
import { bytes, EMPTY, integer, integerFromHex, list } from "../../threads/rlp.js";

/**
 * @typedef {import("../../../../domain/transaction.ts").UnsignedTransaction} UnsignedTransaction
 * @typedef {import("../../../../domain/transaction.ts").AccessListEntry} AccessListEntry
 */

/**
 * @typedef {object} EthereumSignature
 * @property {string} r hex, 32 bytes, no prefix
 * @property {string} s hex, 32 bytes, no prefix
 * @property {0 | 1} yParity
 */

/**
 * The text whose hash is signed: legacy with EIP-155 replay protection, EIP-2930, EIP-1559.
 *
 * @param {UnsignedTransaction} transaction
 * @returns {string} hex without prefix
 */
export function serialiseUnsigned(transaction) {
  const fields = fieldsOf(transaction);
  return transaction.fees.type === "legacy"
    ? list(fields + integer(transaction.chainId) + EMPTY + EMPTY)
    : envelope(transaction) + list(fields);
}

/**
 * @param {UnsignedTransaction} transaction
 * @param {EthereumSignature} signature
 * @returns {string} hex without prefix
 */
export function serialiseSigned(transaction, signature) {
  const scalars = integerFromHex(signature.r) + integerFromHex(signature.s);
  const fields = fieldsOf(transaction);
  if (transaction.fees.type !== "legacy") {
    return envelope(transaction) + list(fields + integer(signature.yParity) + scalars);
  }
  const v = BigInt(transaction.chainId) * 2n + 35n + BigInt(signature.yParity);
  return list(fields + integer(v) + scalars);
}

/** @param {UnsignedTransaction} transaction */
function envelope({ fees }) {
  return fees.type === "eip1559" ? "02" : "01";
}

/** @param {UnsignedTransaction} transaction */
function fieldsOf({ chainId, nonce, to, data, value, gas, fees, accessList }) {
  const price =
    fees.type === "eip1559" ? integer(fees.maxPriorityFeePerGas) + integer(fees.maxFeePerGas) : integer(fees.gasPrice);
  const body = integer(nonce) + price + integer(gas) + bytes(to ?? "0x") + integer(value) + bytes(data);
  if (fees.type !== "legacy") return integer(chainId) + body + accessListOf(accessList);
  if (accessList.length > 0) throw new TypeError("a legacy transaction carries no access list");
  return body;
}

/** @param {readonly AccessListEntry[]} entries */
function accessListOf(entries) {
  return list(
    entries.map(({ address, storageKeys }) => list(bytes(address) + list(storageKeys.map(bytes).join("")))).join(""),
  );
}
