import type { Completion, CompletionsPage, CompletionsQuery } from "../contract/completions.ts";
import type { Transaction } from "../contract/transactions.ts";
import type { CallOptions } from "./transport.ts";

/** Under the 30 s that a node allows, and under what most proxies cut. */
const DEFAULT_WAIT_SECONDS = 20;

/** `epoch` is the one it was written in; `feedEpoch`, kept with `seq`, is what to go on with. */
export type FollowedCompletion = Completion & { readonly feedEpoch: number };

/** Follows `next`, and stays in the epoch it began in: the node refuses the first page of another one. */
export async function* followCompletions(
  readPage: (query: CompletionsQuery, call: CallOptions) => Promise<CompletionsPage>,
  query: CompletionsQuery,
  call: CallOptions,
): AsyncGenerator<FollowedCompletion> {
  let position: CompletionsQuery = { wait: DEFAULT_WAIT_SECONDS, ...query };
  for (;;) {
    const { epoch, items, next } = await readPage(position, call);
    for (const item of items) yield { ...item, feedEpoch: epoch };
    position = { ...position, epoch, after: next };
  }
}

export interface WaitOptions extends CallOptions {
  /** Rejects with a TimeoutError after this long. Without it, only `signal` ends the wait. */
  readonly timeoutMs?: number;
  /** The longest pause between two looks; they begin short and grow. */
  readonly pollIntervalMs?: number;
}

const FIRST_PAUSE_MS = 50;
const DEFAULT_LONGEST_PAUSE_MS = 1_000;

export async function waitForSettled(
  get: (txId: string, call: CallOptions) => Promise<Transaction>,
  txId: string,
  options: WaitOptions,
): Promise<Transaction> {
  const call = callOf(options);
  const longest = options.pollIntervalMs ?? DEFAULT_LONGEST_PAUSE_MS;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    const transaction = await get(txId, call);
    if (transaction.state === "CONFIRMED" || transaction.state === "FAILED_FINAL") return transaction;
    await pause(Math.min(pauseMs, longest), call.signal);
  }
}

function callOf({ signal, timeoutMs }: WaitOptions): CallOptions {
  if (timeoutMs === undefined) return signal === undefined ? {} : { signal };
  const timeout = AbortSignal.timeout(timeoutMs);
  return { signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]) };
}

/** The SDK runs in the caller's process, not in ours: it has no clock port, and this is its only timer. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cut = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", cut);
      resolve();
    }, ms);
    signal?.addEventListener("abort", cut, { once: true });
  });
}
