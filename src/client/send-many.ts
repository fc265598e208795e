import type { BatchResults, CreatedTransaction } from "../contract/schemas/create.ts";
import type { TransactionIntent } from "../contract/schemas/typed-payload.ts";
import { backOffMs, type CallOptions, countdown, pause } from "./deadline.ts";
import { FencepostError, fromProblem, ofRequest, unexpectedAnswer } from "./error-classes.ts";
import { mayRepeat } from "./failover.ts";

/** Maximum number of items that a node accepts in one request. */
const LARGEST_BATCH = 1_000;

type Item = TransactionIntent & { readonly requestId: string };
type Result = CreatedTransaction | FencepostError;
type SendBatch = (transactions: readonly Item[], call: CallOptions) => Promise<BatchResults["results"]>;

/**
 * Sends items in requests of up to a thousand. Each item has its own request id, so every request may safely be
 * repeated. Items that a busy node refused are sent again after the others, while time is left.
 */
export async function sendMany(
  sendBatch: SendBatch,
  items: readonly Item[],
  { timeoutMs, ...call }: CallOptions & { readonly timeoutMs: number },
): Promise<readonly Result[]> {
  const leftMs = countdown(timeoutMs);
  const results = new Array<Result>(items.length);
  let open = [...items.keys()];
  for (let round = 0; ; round++) {
    for (let from = 0; from < open.length; from += LARGEST_BATCH) {
      const places = open.slice(from, from + LARGEST_BATCH);
      const batch = places.map((place) => items[place] as Item);
      const answers = await answersTo(sendBatch, batch, { ...call, timeoutMs: Math.max(leftMs(), 1) });
      places.forEach((place, at) => {
        results[place] = answers[at] as Result;
      });
    }
    open = open.filter((place) => isBusy(results[place]));
    const waits = open.map((place) => (results[place] as FencepostError).retryAfterSeconds ?? 0);
    const waitMs = waits.reduce((most, each) => Math.max(most, each * 1000), backOffMs(round));
    if (open.length === 0 || waitMs >= leftMs()) return results;
    await pause(waitMs, call.signal);
  }
}

function isBusy(result: Result | undefined): boolean {
  return result instanceof FencepostError && mayRepeat(result);
}

/** Results of a batch, one per item, even if the whole request fails. Throws only if the caller aborts. */
async function answersTo(sendBatch: SendBatch, batch: readonly Item[], call: CallOptions): Promise<readonly Result[]> {
  try {
    const results = await sendBatch(batch, call);
    if (results.length !== batch.length) throw unexpectedAnswer(200, `${results.length} results`);
    return results.map((each, at) =>
      "code" in each ? ofRequest(fromProblem(each), (batch[at] as Item).requestId) : each,
    );
  } catch (error) {
    call.signal?.throwIfAborted();
    if (!(error instanceof FencepostError)) throw error;
    if (error.code !== "PAYLOAD_TOO_LARGE" || batch.length < 2) {
      return batch.map(({ requestId }) => ofRequest(error, requestId));
    }
    const middle = batch.length >> 1;
    const half = (from: number, to?: number) => answersTo(sendBatch, batch.slice(from, to), call);
    return [...(await half(0, middle)), ...(await half(middle))];
  }
}
