// @ts-check
import { loadCurve } from "./curve.js";
import { signTransaction } from "./serialise.js";

/**
 * Signs with the keys given at start; requests name a key by its index.
 *
 * @typedef {import("./serialise.js").EncodedTransaction} EncodedTransaction
 * @typedef {{ readonly keys: readonly Uint8Array[], readonly curve: "auto" | "javascript" }} WorkerData
 * @typedef {readonly [key: number, transactions: readonly EncodedTransaction[]]} SignRequest
 * @typedef {readonly [rawTransaction: `0x${string}`, txHash: `0x${string}`]} Signed
 */

/** Loads the curve and makes the signing function. @param {WorkerData} data */
export async function openSigning({ keys, curve: wanted }) {
  const curve = await loadCurve(wanted === "javascript" ? null : undefined);
  return {
    curve: curve.kind,
    /**
     * Signs transactions with one key.
     *
     * @param {SignRequest} request
     * @returns {Promise<readonly Signed[]>}
     */
    async sign([key, transactions]) {
      const privateKey = keys[key];
      if (privateKey === undefined) throw new RangeError(`the signing worker has no key ${key}`);
      /** @type {Signed[]} */
      const signed = [];
      for (const transaction of transactions) {
        const { rawTransaction, txHash } = await signTransaction(transaction, (hash) => curve.sign(privateKey, hash));
        signed.push([rawTransaction, txHash]);
      }
      return signed;
    },
  };
}
