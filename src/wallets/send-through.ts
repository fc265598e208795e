import type { Transaction } from "../contract/schemas/transaction-schema.ts";
import { firstAttempt, type HashedAttempt } from "./attempt-hashes.ts";
import { Patience } from "./patience.ts";
import { FencepostSendError, isUndecided, sendErrorOf } from "./send-error.ts";
import type { FencepostSource, Intent } from "./source.ts";

export interface Sent {
  readonly transaction: Transaction;
  /** The first attempt of the transaction; `hash` is the hash of this attempt. A repriced attempt has another hash. */
  readonly attempt: HashedAttempt;
}

/** Time limit of a send: until it is accepted and signed. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Sends a transaction once: every repeat has the same request id. Resolves when the first attempt is signed and stored,
 * because from then on its hash is certain.
 */
export async function sendThrough(source: FencepostSource, intent: Intent, timeoutMs: number): Promise<Sent> {
  const patience = new Patience(timeoutMs);
  const { txId } = await untilDecided(patience, intent, () => source.send(intent));
  for (;;) {
    const transaction = await untilDecided(patience, intent, () => source.get(txId));
    const attempt = firstAttempt(transaction);
    if (attempt !== null) return { transaction, attempt };
    if (transaction.state === "FAILED_FINAL" || patience.isOver) throw withoutHash(transaction, intent);
    await patience.pause();
  }
}

/** Repeats a request, which has a request id, until its result is known or the time is over. */
export async function untilDecided<T>(
  patience: Patience,
  { requestId }: Pick<Intent, "requestId">,
  ask: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isUndecided(error) || patience.isOver) throw sendErrorOf(error, requestId);
      await patience.pause();
    }
  }
}

function withoutHash({ txId, state, subState, lastError }: Transaction, { requestId }: Intent): FencepostSendError {
  const where = subState === null ? state : `${state}/${subState}`;
  const why = lastError === null ? "" : ` (${lastError})`;
  const message =
    state === "FAILED_FINAL"
      ? `${txId} ended as ${where}${why} and was never signed`
      : `accepted as ${txId}, not signed yet: it is ${where}${why}, and continues. Wait for it with waitForFinal`;
  return new FencepostSendError(message, {
    requestId,
    txId,
    failure: state === "FAILED_FINAL" ? "CONFLICT" : "TIMEOUT",
  });
}
