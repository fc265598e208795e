// @ts-check
// The function behind viem's, without the hundreds of files that come with viem: every node loads this once more.
import { keccak_256 } from "@noble/hashes/sha3.js";
import { toHex } from "./hex.js";
import { serialiseSigned, serialiseUnsigned } from "./serialise.js";

/**
 * @typedef {import("./curve.js").Curve} Curve
 * @typedef {import("../../../../domain/transaction.ts").UnsignedTransaction} UnsignedTransaction
 * @typedef {import("../../../../ports/signer.ts").SignedTransaction} SignedTransaction
 */

/**
 * @param {Curve} curve
 * @param {Uint8Array} privateKey
 * @param {UnsignedTransaction} transaction
 * @returns {Promise<SignedTransaction>}
 */
export async function signTransaction(curve, privateKey, transaction) {
  const hash = keccak_256(Buffer.from(serialiseUnsigned(transaction), "hex"));
  const raw = serialiseSigned(transaction, await curve.sign(privateKey, hash));
  return { rawTransaction: `0x${raw}`, txHash: toHex(keccak_256(Buffer.from(raw, "hex"))) };
}
