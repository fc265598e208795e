// @ts-check
import { loadCurve } from "./curve.js";
import { signDigest, signTransaction } from "./serialise.js";

/**
 * Signs with the keys given at start; requests name a key by its index.
 *
 * @typedef {import("./serialise.js").EncodedTransaction} EncodedTransaction
 * @typedef {{ readonly keys: readonly Uint8Array[], readonly curve: "auto" | "javascript" }} WorkerData
 * @typedef {readonly [key: number, items: readonly (EncodedTransaction | `0x${string}`)[]]} SignRequest transactions, and
 *   digests of messages
 * @typedef {readonly [rawTransaction: `0x${string}`, txHash: `0x${string}`]} Signed for a digest: its signature, and the
 *   digest
 */

/** Loads the curve and makes the signing function. @param {WorkerData} data */
export async function openSigning({ keys, curve: wanted }) {
  const curve = await loadCurve(wanted === "javascript" ? null : undefined);
  return {
    curve: curve.kind,
    /**
     * Signs transactions and digests of messages with one key.
     *
     * @param {SignRequest} request
     * @returns {Promise<readonly Signed[]>}
     */
    async sign([key, items]) {
      const privateKey = keys[key];
      if (privateKey === undefined) throw new RangeError(`the signing worker has no key ${key}`);
      /** @type {Signed[]} */
      const signed = [];
      for (const item of items) {
        if (typeof item === "string") {
          signed.push([await signDigest(item, (hash) => curve.sign(privateKey, hash)), item]);
          continue;
        }
        const { rawTransaction, txHash } = await signTransaction(item, (hash) => curve.sign(privateKey, hash));
        signed.push([rawTransaction, txHash]);
      }
      return signed;
    },
  };
}
