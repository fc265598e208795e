import { ordinaryCalls } from "../../client/calls.ts";
import type { CallOptions } from "../../client/deadline.ts";
import type { FencepostFace } from "../../client/face.ts";
import { isSettled, lookUntil } from "../../client/follow.ts";
import { SentTransaction } from "../../client/sent-transaction.ts";
import { withNonce } from "../../client/with-nonce.ts";
import type { CreatedTransaction } from "../../contract/schemas/create.ts";
import { Asking, type Inside } from "./asking.ts";
import { inProcess } from "./in-process.ts";
import { sendingCalls } from "./making-calls.ts";

/** It asks a database near by, and no network. */
const LOOK_EVERY_MS = 100;

/** The same calls, answers and errors as over HTTP, without it. */
export function createFace<SendOptions extends CallOptions>(inside: Inside<SendOptions>): FencepostFace<SendOptions> {
  const asking = new Asking(inside);
  const calls = ordinaryCalls(inProcess(inside, asking));
  const handle = (created: CreatedTransaction) => new SentTransaction(calls, created, LOOK_EVERY_MS);
  return {
    ...calls,
    ...sendingCalls(inside, asking, handle),
    async *completions(query = {}, options = {}) {
      try {
        yield* calls.completions(query, asking.untilClosed(options));
      } catch (error) {
        // The feed ends with the node that it was read from.
        if (!inside.closing.aborted) throw error;
      }
    },
    handle: async (txId, options) => handle(await calls.get(txId, options)),
    waitFor: (txId, options = {}) =>
      lookUntil(calls.get, txId, asking.untilClosed({ pollIntervalMs: LOOK_EVERY_MS, ...options }), isSettled),
    withNonce: (lane, callback) => withNonce(calls, lane, callback),
  };
}
