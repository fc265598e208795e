// @ts-check
import { parentPort, workerData } from "node:worker_threads";
import { loadCurve } from "./curve.js";
import { signTransaction } from "./sign.js";

/**
 * The signing thread. Keys arrive once, at start; requests name them by position.
 *
 * @typedef {import("../../../../domain/transaction.ts").UnsignedTransaction} UnsignedTransaction
 * @typedef {import("../../../../ports/signer.ts").SignedTransaction} SignedTransaction
 * @typedef {{ readonly keys: readonly Uint8Array[], readonly curve: "auto" | "javascript" }} WorkerData
 * @typedef {{ readonly id: number, readonly key: number, readonly transactions: readonly UnsignedTransaction[] }} SignRequest
 * @typedef {{ readonly id: number, readonly signed: readonly SignedTransaction[] } | { readonly id: number, readonly error: string }} SignReply
 */

const port = parentPort;
if (port === null) throw new Error("sign-worker.js runs as a worker thread only");

/** @type {WorkerData} */
const { keys, curve: wanted } = workerData;
const curve = await loadCurve(wanted === "javascript" ? null : undefined);

/** So many signatures are not kept back for the sake of those behind them. */
const ENOUGH = 64;

port.on("message", async (/** @type {readonly SignRequest[]} */ requests) => {
  /** @type {SignReply[]} */
  let replies = [];
  let signatures = 0;
  for (const request of requests) {
    replies.push(await reply(request));
    signatures += request.transactions.length;
    if (signatures < ENOUGH) continue;
    port.postMessage(replies);
    replies = [];
    signatures = 0;
  }
  if (replies.length > 0) port.postMessage(replies);
});
port.postMessage({ ready: curve.kind });

/**
 * @param {SignRequest} request
 * @returns {Promise<SignReply>}
 */
async function reply({ id, key, transactions }) {
  try {
    const privateKey = keys[key];
    if (privateKey === undefined) throw new RangeError(`there is no key ${key}`);
    const signed = [];
    for (const transaction of transactions) signed.push(await signTransaction(curve, privateKey, transaction));
    return { id, signed };
  } catch (error) {
    return { id, error: error instanceof Error ? error.message : String(error) };
  }
}
