// @ts-check
import { workerData } from "node:worker_threads";
import { serve } from "../../threads/serve.js";
import { loadCurve } from "./curve.js";
import { signTransaction } from "./sign.js";

/**
 * The signing thread. Keys arrive once, at start; requests name them by position.
 *
 * @typedef {import("../../../../domain/transaction.ts").UnsignedTransaction} UnsignedTransaction
 * @typedef {import("../../../../ports/signer.ts").SignedTransaction} SignedTransaction
 * @typedef {{ readonly keys: readonly Uint8Array[], readonly curve: "auto" | "javascript" }} WorkerData
 * @typedef {{ readonly key: number, readonly transactions: readonly UnsignedTransaction[] }} SignRequest
 */

/** @type {WorkerData} */
const { keys, curve: wanted } = workerData;
const curve = await loadCurve(wanted === "javascript" ? null : undefined);
serve(sign, { hello: { ready: curve.kind }, weigh: ({ transactions }) => transactions.length });

/**
 * @param {SignRequest} request
 * @returns {Promise<readonly SignedTransaction[]>}
 */
async function sign({ key, transactions }) {
  const privateKey = keys[key];
  if (privateKey === undefined) throw new RangeError(`there is no key ${key}`);
  const signed = [];
  for (const transaction of transactions) signed.push(await signTransaction(curve, privateKey, transaction));
  return signed;
}
