// @ts-check
// The function behind viem's, without the hundreds of files that come with viem.
import { keccak_256 } from "@noble/hashes/sha3.js";

/** @param {string} hex without prefix @returns {string} hex without prefix */
export function keccak(hex) {
  return Buffer.from(keccak_256(Buffer.from(hex, "hex"))).toString("hex");
}
