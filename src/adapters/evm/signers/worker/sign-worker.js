// @ts-check
import { workerData } from "node:worker_threads";
import { serve } from "../../threads/serve.js";
import { loadCurve } from "./curve.js";
import { signTransaction } from "./sign.js";

/**
 * The signing thread. Keys arrive once, at start; requests name them by position.
 *
 * @typedef {import("./serialise.js").EncodedTransaction} EncodedTransaction
 * @typedef {{ readonly keys: readonly Uint8Array[], readonly curve: "auto" | "javascript" }} WorkerData
 * @typedef {readonly [key: number, transactions: readonly EncodedTransaction[]]} SignRequest
 * @typedef {readonly [rawTransaction: `0x${string}`, txHash: `0x${string}`]} Signed
 */

/** @type {WorkerData} */
const { keys, curve: wanted } = workerData;
const curve = await loadCurve(wanted === "javascript" ? null : undefined);
serve(sign, { hello: { ready: curve.kind }, weigh: ([, transactions]) => transactions.length });

/**
 * @param {SignRequest} request
 * @returns {Promise<readonly Signed[]>}
 */
async function sign([key, transactions]) {
  const privateKey = keys[key];
  if (privateKey === undefined) throw new RangeError(`there is no key ${key}`);
  /** @type {Signed[]} */
  const signed = [];
  for (const transaction of transactions) {
    const { rawTransaction, txHash } = await signTransaction(transaction, (hash) => curve.sign(privateKey, hash));
    signed.push([rawTransaction, txHash]);
  }
  return signed;
}
