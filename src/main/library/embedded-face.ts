import type { CallOptions } from "../../client/deadline.ts";
import type { FencepostFace } from "../../client/face.ts";
import { isSettled, lookUntil } from "../../client/follow.ts";
import { SentTransaction } from "../../client/sent-transaction.ts";
import { withNonce } from "../../client/with-nonce.ts";
import type { CreatedTransaction } from "../../contract/create.ts";
import { actingCalls } from "./acting-calls.ts";
import { Asking, type Inside } from "./asking.ts";
import { reservingCalls, sendingCalls } from "./making-calls.ts";
import { readingCalls } from "./reading-calls.ts";

/** It asks a database near by, and no network. */
const LOOK_EVERY_MS = 100;

/** The same calls, answers and errors as over HTTP, without it. */
export function createFace<SendOptions extends CallOptions>(inside: Inside<SendOptions>): FencepostFace<SendOptions> {
  const asking = new Asking(inside);
  const reading = readingCalls(inside, asking);
  const calls = { ...reading, ...actingCalls(inside, asking) };
  const reserving = reservingCalls(inside, asking);
  const handle = (created: CreatedTransaction) => new SentTransaction(calls, created, LOOK_EVERY_MS);
  return {
    ...calls,
    ...reserving,
    ...sendingCalls(inside, asking, handle),
    handle: async (txId, options) => handle(await reading.get(txId, options)),
    waitFor: (txId, options = {}) =>
      lookUntil(reading.get, txId, asking.untilClosed({ pollIntervalMs: LOOK_EVERY_MS, ...options }), isSettled),
    withNonce: (lane, callback) => withNonce(reserving, lane, callback),
  };
}
