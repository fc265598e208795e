import type { Transaction } from "../contract/transaction-schema.ts";
import { firstAttempt, type HashedAttempt } from "./attempt-hashes.ts";
import { Patience } from "./patience.ts";
import { FencepostSendError, isUndecided, sendErrorOf } from "./send-error.ts";
import type { FencepostSource, Intent } from "./source.ts";

export interface Sent {
  readonly transaction: Transaction;
  /** The first: `hash` is of this one. A dearer offer for the same transaction has another hash. */
  readonly attempt: HashedAttempt;
}

/** How long a send may take altogether: until it is accepted, and until it is signed. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Sends once, however often it has to ask: each time with the same request id. Resolves when the first attempt is signed and
 * stored, which is when its hash is known for certain.
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

async function untilDecided<T>(patience: Patience, { requestId }: Intent, ask: () => Promise<T>): Promise<T> {
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
      : `accepted as ${txId}, not signed yet: it is ${where}${why}, and goes on. Wait for it with waitForFinal`;
  return new FencepostSendError(message, { requestId, txId });
}
