// @ts-check

/**
 * RLP as hex text without prefix: the inputs are hex, and joining strings is cheaper than joining buffers. Plain
 * JavaScript, like everything that a worker loads: Node 20 cannot load TypeScript in a worker thread.
 */

/** RLP of the empty string and of zero. */
export const EMPTY = "80";

/** @param {string} hex with prefix */
export function bytes(hex) {
  return byteString(hex.slice(2));
}

/** @param {bigint | number} value */
export function integer(value) {
  const digits = value.toString(16);
  return digits === "0" ? EMPTY : byteString(wholeBytes(digits));
}

/** RLP integers have no leading zero byte, and zero is the empty string. @param {string} hex without prefix */
export function integerFromHex(hex) {
  return byteString(wholeBytes(hex.startsWith("0") ? hex.replace(/^0+/, "") : hex));
}

/** @param {string} digits */
function wholeBytes(digits) {
  return digits.length % 2 === 0 ? digits : `0${digits}`;
}

/** @param {string} hex of whole bytes, no prefix */
export function byteString(hex) {
  return hex.length === 2 && hex < "80" ? hex : header(0x80, hex.length / 2) + hex;
}

/** @param {string} content */
export function list(content) {
  return header(0xc0, content.length / 2) + content;
}

/**
 * @param {0x80 | 0xc0} kind
 * @param {number} length in bytes
 */
function header(kind, length) {
  if (length < 56) return (kind + length).toString(16);
  const size = wholeBytes(length.toString(16));
  return (kind + 55 + size.length / 2).toString(16) + size;
}
