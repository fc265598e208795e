// @ts-check
import { keccak256 } from "../../threads/keccak.js";

/** @param {string} hex without prefix @returns {string} hex without prefix */
export function keccak(hex) {
  return Buffer.from(keccak256(Buffer.from(hex, "hex"))).toString("hex");
}
