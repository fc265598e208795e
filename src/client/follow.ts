import type { Completion, CompletionsPage, CompletionsQuery } from "../contract/completions.ts";
import type { Transaction } from "../contract/transaction-schema.ts";
import { backOffMs, type CallOptions, pause, underDeadline } from "./deadline.ts";
import { FencepostError } from "./error-classes.ts";
import { mayRepeat } from "./failover.ts";

/** Under the 30 s that a node allows, and under what most proxies cut. */
const DEFAULT_WAIT_SECONDS = 20;

/** `epoch` is the one it was written in; `feedEpoch`, kept with `seq`, is what to go on with. */
export type FollowedCompletion = Completion & { readonly feedEpoch: number };

/** Everything up to `seq` was dealt with; `epoch` is the feed's. */
export interface FeedPlace {
  readonly seq: number;
  readonly epoch: number;
}

/** Where a reader of the feed keeps its place: a row, a file, a key. */
export interface FeedStore {
  /** Null or undefined where nothing was saved yet. */
  load(): Promise<FeedPlace | null | undefined> | FeedPlace | null | undefined;
  save(place: FeedPlace): Promise<unknown> | unknown;
}

export interface FollowQuery extends CompletionsQuery {
  /**
   * The place is kept there: an item's when the next one is asked for, so that each is delivered at least once. With it a
   * reader goes on by itself after a changed epoch and after any silence.
   */
  readonly store?: FeedStore;
}

type ReadPage = (query: CompletionsQuery, call: CallOptions) => Promise<CompletionsPage>;

/** Follows `next`, and stays in the epoch it began in: the node refuses the first page of another one. */
export async function* followCompletions(
  readPage: ReadPage,
  { store, ...query }: FollowQuery,
  call: CallOptions,
): AsyncGenerator<FollowedCompletion, void, undefined> {
  const saved = await store?.load();
  let position: CompletionsQuery = {
    wait: DEFAULT_WAIT_SECONDS,
    ...query,
    ...(saved && { after: saved.seq, epoch: saved.epoch }),
  };
  for (let failures = 0; ; ) {
    let page: CompletionsPage;
    try {
      page = await readPage(position, call);
      failures = 0;
    } catch (error) {
      if (store === undefined) throw error;
      const moved = elsewhere(error);
      if (moved !== null) {
        position = { ...position, after: moved.seq, epoch: moved.epoch };
        await store.save(moved);
      }
      await pause(moved !== null && failures === 0 ? 0 : backOffMs(failures), call.signal);
      failures++;
      continue;
    }
    const { epoch, items, next } = page;
    let kept = position.after;
    for (const item of items) {
      yield { ...item, feedEpoch: epoch };
      kept = item.seq;
      await store?.save({ seq: kept, epoch });
    }
    // Past what this key may not see.
    if (next > (kept ?? 0)) await store?.save({ seq: next, epoch });
    position = { ...position, epoch, after: next };
  }
}

/** Where the feed goes on in another epoch; null where the same is asked again. Throws what asking again does not help. */
function elsewhere(error: unknown): FeedPlace | null {
  if (!(error instanceof FencepostError)) throw error;
  const { code, epoch, resumeAfter: seq } = error;
  if (code === "EPOCH_CHANGED" && Number.isSafeInteger(epoch) && Number.isSafeInteger(seq)) {
    return { seq: seq as number, epoch: epoch as number };
  }
  if (code === "TIMEOUT" || mayRepeat(error)) return null;
  throw error;
}

export interface WaitOptions extends CallOptions {
  /** The longest pause between two looks; they begin short and grow. */
  readonly pollIntervalMs?: number;
}

const FIRST_PAUSE_MS = 50;
const DEFAULT_LONGEST_PAUSE_MS = 1_000;

type Get = (txId: string, call: CallOptions) => Promise<Transaction>;

/** Looks, again and again, until it is as asked. */
export function lookUntil(
  get: Get,
  txId: string,
  { pollIntervalMs: longest = DEFAULT_LONGEST_PAUSE_MS, ...limits }: WaitOptions,
  isThere: (transaction: Transaction) => boolean,
): Promise<Transaction> {
  return underDeadline(`${txId} goes on, and was not there yet`, limits, async ({ signal }) => {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      const transaction = await get(txId, { signal });
      if (isThere(transaction)) return transaction;
      await pause(Math.min(pauseMs, longest), signal);
    }
  });
}

export function isSettled({ state }: Pick<Transaction, "state">): boolean {
  return state === "CONFIRMED" || state === "FAILED_FINAL";
}
