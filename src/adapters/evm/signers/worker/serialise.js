// @ts-check

/**
 * RLP as hex text: the result of signing is hex anyway, and joining strings is cheaper than joining buffers.
 * Plain JavaScript, like everything the signing worker loads: Node 20 cannot load TypeScript in a worker thread.
 *
 * @typedef {import("../../../../domain/transaction.ts").UnsignedTransaction} UnsignedTransaction
 * @typedef {import("../../../../domain/transaction.ts").AccessListEntry} AccessListEntry
 */

/**
 * @typedef {object} EthereumSignature
 * @property {string} r hex, 32 bytes, no prefix
 * @property {string} s hex, 32 bytes, no prefix
 * @property {0 | 1} yParity
 */

const ZERO = "80";

/**
 * The text whose hash is signed: legacy with EIP-155 replay protection, EIP-2930, EIP-1559.
 *
 * @param {UnsignedTransaction} transaction
 * @returns {string} hex without prefix
 */
export function serialiseUnsigned(transaction) {
  const fields = fieldsOf(transaction);
  return transaction.fees.type === "legacy"
    ? list(fields + integer(transaction.chainId) + ZERO + ZERO)
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

/** @param {string} hex with prefix */
function bytes(hex) {
  return byteString(hex.slice(2));
}

/** @param {bigint | number} value */
function integer(value) {
  return integerFromHex(value.toString(16));
}

/** RLP integers have no leading zero byte, and zero is the empty string. @param {string} hex */
function integerFromHex(hex) {
  const digits = hex.replace(/^0+/, "");
  return byteString(digits.length % 2 === 0 ? digits : `0${digits}`);
}

/** @param {string} hex of whole bytes, no prefix */
function byteString(hex) {
  return hex.length === 2 && hex < "80" ? hex : header(0x80, hex.length / 2) + hex;
}

/** @param {string} content */
function list(content) {
  return header(0xc0, content.length / 2) + content;
}

/**
 * @param {0x80 | 0xc0} kind
 * @param {number} length in bytes
 */
function header(kind, length) {
  if (length < 56) return (kind + length).toString(16);
  const digits = length.toString(16);
  const size = digits.length % 2 === 0 ? digits : `0${digits}`;
  return (kind + 55 + size.length / 2).toString(16) + size;
}
