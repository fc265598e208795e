// @ts-check
import { keccak256 } from "../../threads/keccak.js";
import { toHex } from "./hex.js";
import { serialiseSigned, serialiseUnsigned } from "./serialise.js";

/**
 * @typedef {import("./curve.js").Curve} Curve
 * @typedef {import("./serialise.js").EncodedTransaction} EncodedTransaction
 * @typedef {import("../../../../ports/signer.ts").SignedTransaction} SignedTransaction
 */

/**
 * @param {Curve} curve
 * @param {Uint8Array} privateKey
 * @param {EncodedTransaction} transaction
 * @returns {Promise<SignedTransaction>}
 */
export async function signTransaction(curve, privateKey, transaction) {
  const hash = keccak256(Buffer.from(serialiseUnsigned(transaction), "hex"));
  const raw = serialiseSigned(transaction, await curve.sign(privateKey, hash));
  return { rawTransaction: `0x${raw}`, txHash: toHex(keccak256(Buffer.from(raw, "hex"))) };
}
