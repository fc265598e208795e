// @ts-check
import { keccak256 } from "viem/utils";
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
  const hash = keccak256(Buffer.from(serialiseUnsigned(transaction), "hex"), "bytes");
  const raw = serialiseSigned(transaction, await curve.sign(privateKey, hash));
  return { rawTransaction: `0x${raw}`, txHash: keccak256(Buffer.from(raw, "hex")) };
}
