import type { BatchResults, CreatedTransaction } from "../contract/schemas/create.ts";
import type { TransactionIntent } from "../contract/schemas/typed-payload.ts";
import { laneOf, ordinaryCalls, rethrowOf, withRequestId } from "./calls.ts";
import type { CallOptions } from "./deadline.ts";
import { FencepostError } from "./error-classes.ts";
import type { FencepostFace } from "./face.ts";
import { isSettled, lookUntil } from "./follow.ts";
import { streamedPages } from "./outcomes.ts";
import { sendMany } from "./send-many.ts";
import { SentTransaction } from "./sent-transaction.ts";
import { type ClientOptions, createTransport, DEFAULT_TIMEOUT_MS } from "./transport.ts";
import { withNonce } from "./with-nonce.ts";

export { asAddress, asHex, asWei } from "./hex.ts";
export * from "./public-errors.ts";
export type * from "./public-types.ts";
export { SentTransaction } from "./sent-transaction.ts";
export type { ClientOptions } from "./transport.ts";
export { type NonceUse, neverSent, type UsesNonce } from "./with-nonce.ts";

/**
 * Client of one or several nodes over HTTP. Safe requests are repeated within the time limit of the call: reads, and
 * requests with a request id or an idempotency key, which the SDK generates if you give none.
 */
export interface FencepostClient extends FencepostFace {
  /**
   * Sends one batch request and returns the results unchanged; check each `status`. `sendMany` accepts any number, and
   * returns handles.
   */
  sendBatch(transactions: readonly TransactionIntent[], options?: CallOptions): Promise<BatchResults["results"]>;
}

/**
 * Creates a client of one or several nodes over HTTP. It has no dependencies and opens no connection of its own.
 *
 * @example
 * const fencepost = createClient({ url: "https://fencepost.internal", apiKey });
 * const tx = await fencepost.send({ signer, requestId: "order-42", payload: { to, value: 1n } });
 * const { state } = await tx.final();
 */
export function createClient(options: ClientOptions): FencepostClient {
  const transport = createTransport(options);
  const calls = ordinaryCalls(transport, () => streamedPages(transport));
  const sendBatch: FencepostClient["sendBatch"] = async (transactions, call) => {
    const body = { transactions: transactions.map(withRequestId) };
    return (await transport<BatchResults>({ at: "post /tx/batch", expects: "results", body, ...call })).results;
  };
  const client: FencepostClient = {
    ...calls,
    sendBatch,
    send: async (intent, call) => {
      const item = withRequestId(intent);
      const asked = { at: "post /tx", expects: "txId", body: item, lane: laneOf(item), ...call };
      return new SentTransaction(client, await transport<CreatedTransaction>(asked).catch(rethrowOf(item)));
    },
    sendMany: async (intents, call = {}) => {
      const limits = { timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS, ...call };
      const results = await sendMany(sendBatch, intents.map(withRequestId), limits);
      return results.map((each) => (each instanceof FencepostError ? each : new SentTransaction(client, each)));
    },
    handle: async (txId, call) => new SentTransaction(client, await client.get(txId, call)),
    waitFor: (txId, wait = {}) => lookUntil(client.get, txId, wait, isSettled),
    withNonce: (lane, callback) => withNonce(client, lane, callback),
  };
  return client;
}
