// @ts-check
import { keccak256 } from "../../threads/keccak.js";
import { toHex } from "./hex.js";
import { serialiseSigned, serialiseUnsigned } from "./serialise.js";

/**
 * @typedef {import("./serialise.js").EncodedTransaction} EncodedTransaction
 * @typedef {import("./serialise.js").EthereumSignature} EthereumSignature
 * @typedef {import("../../../../ports/signer.ts").SignedTransaction} SignedTransaction
 */

/**
 * @param {EncodedTransaction} transaction
 * @param {(hash: Uint8Array) => EthereumSignature | Promise<EthereumSignature>} sign of its hash
 * @returns {Promise<SignedTransaction>}
 */
export async function signTransaction(transaction, sign) {
  const raw = serialiseSigned(transaction, await sign(hashToSign(transaction)));
  return { rawTransaction: `0x${raw}`, txHash: toHex(keccak256(Buffer.from(raw, "hex"))) };
}

/** @param {EncodedTransaction} transaction */
export function hashToSign(transaction) {
  return keccak256(Buffer.from(serialiseUnsigned(transaction), "hex"));
}
