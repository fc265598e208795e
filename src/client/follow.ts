import type { Completion, CompletionsPage, CompletionsQuery } from "../contract/schemas/completions.ts";
import type { Transaction } from "../contract/schemas/transaction-schema.ts";
import { backOffMs, type CallOptions, pause, underDeadline } from "./deadline.ts";
import { FencepostError } from "./error-classes.ts";
import { mayRepeat } from "./failover.ts";

/** Default duration of a long poll: below a node's limit of 30 s, and below the timeout of most proxies. */
const DEFAULT_WAIT_SECONDS = 20;

/**
 * A completion of the feed. `epoch`: the epoch in which the item was written. `feedEpoch`: the current epoch; save it
 * together with `seq` to continue later.
 */
export type FollowedCompletion = Completion & { readonly feedEpoch: number };

/** Position in the feed: everything up to `seq` is processed. `epoch`: the feed's epoch at that time. */
export interface FeedPlace {
  readonly seq: number;
  readonly epoch: number;
}

/** Storage of a reader's position: a row, a file, a key. */
export interface FeedStore {
  /** Loads the saved position; null or undefined if none was saved yet. */
  load(): Promise<FeedPlace | null | undefined> | FeedPlace | null | undefined;
  /** Saves the position; the next item is delivered once this resolves. */
  save(place: FeedPlace): Promise<unknown> | unknown;
}

export interface FollowQuery extends CompletionsQuery {
  /**
   * Where the position is saved. An item's position is saved when the next item is requested, so each is delivered at
   * least once. With a store the reader continues by itself after a changed epoch or an outage.
   */
  readonly store?: FeedStore;
}

export type ReadPage = (query: CompletionsQuery, call: CallOptions) => Promise<CompletionsPage>;

/**
 * Reads the feed page by page, each from the `next` of the page before. Every request names the epoch, and the node
 * refuses it once the epoch has changed. With `persists`, errors that a repeat may fix are repeated. A changed epoch is
 * one of them only with a store: otherwise the caller has to know of it.
 */
export async function* followCompletions(
  readPage: ReadPage,
  { store, ...query }: FollowQuery,
  call: CallOptions,
  persists = store !== undefined,
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
      if (!persists) throw error;
      const moved = newPosition(error);
      if (moved !== null) {
        if (store === undefined) throw error;
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
    // Save `next` even if no item is left on the page: `next` is already past items that this key may not see.
    if (next > (kept ?? 0)) await store?.save({ seq: next, epoch });
    position = { ...position, epoch, after: next };
  }
}

/**
 * Position to continue at after the feed's epoch has changed; null if the same request is to be repeated. Throws errors
 * that a repeat cannot fix.
 */
function newPosition(error: unknown): FeedPlace | null {
  if (!(error instanceof FencepostError)) throw error;
  const { code, epoch, resumeAfter: seq } = error;
  if (code === "EPOCH_CHANGED" && Number.isSafeInteger(epoch) && Number.isSafeInteger(seq)) {
    return { seq: seq as number, epoch: epoch as number };
  }
  if (code === "TIMEOUT" || mayRepeat(error)) return null;
  throw error;
}

export interface WaitOptions extends CallOptions {
  /** Longest pause between two polls in ms; pauses start short and grow. */
  readonly pollIntervalMs?: number;
}

const FIRST_PAUSE_MS = 50;
const DEFAULT_LONGEST_PAUSE_MS = 1_000;

type Get = (txId: string, call: CallOptions) => Promise<Transaction>;

/** Polls a transaction until the condition holds. */
export function lookUntil(
  get: Get,
  txId: string,
  { pollIntervalMs: longest = DEFAULT_LONGEST_PAUSE_MS, ...limits }: WaitOptions,
  isThere: (transaction: Transaction) => boolean,
): Promise<Transaction> {
  return underDeadline(`${txId} continues, and has not reached the awaited state`, limits, async ({ signal }) => {
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
