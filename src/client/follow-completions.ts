import type { Completion, CompletionsPage, CompletionsQuery } from "../contract/completions.ts";
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
