// @ts-check

/**
 * RLP encoding as hex text without prefix: the inputs are hex, and joining strings is cheaper than joining buffers.
 * Plain JavaScript, like all code that a worker loads: Node.js 20 cannot load TypeScript in a worker thread.
 */

/** RLP of the empty string and of zero. */
export const EMPTY = "80";

/** Encodes bytes. @param {string} hex with prefix */
export const bytes = (hex) => byteString(hex.slice(2));

/** Encodes an integer. @param {bigint | number} value */
export function integer(value) {
  const digits = value.toString(16);
  return digits === "0" ? EMPTY : byteString(wholeBytes(digits));
}

/**
 * Encodes an integer: RLP integers have no leading zero byte, and zero is the empty string. @param {string} hex without
 * prefix
 */
export const integerFromHex = (hex) => byteString(wholeBytes(hex.startsWith("0") ? hex.replace(/^0+/, "") : hex));

/** Adds a leading zero if the number of hex digits is odd. @param {string} digits */
const wholeBytes = (digits) => (digits.length % 2 === 0 ? digits : `0${digits}`);

/** Encodes a byte string. @param {string} hex of whole bytes, no prefix */
export const byteString = (hex) => (hex.length === 2 && hex < "80" ? hex : header(0x80, hex.length / 2) + hex);

/** Encodes a list whose items are already encoded. @param {string} content */
export const list = (content) => header(0xc0, content.length / 2) + content;

/**
 * Encodes the header of a byte string (0x80) or a list (0xc0).
 *
 * @param {0x80 | 0xc0} kind
 * @param {number} length in bytes
 */
function header(kind, length) {
  if (length < 56) return (kind + length).toString(16);
  const size = wholeBytes(length.toString(16));
  return (kind + 55 + size.length / 2).toString(16) + size;
}
