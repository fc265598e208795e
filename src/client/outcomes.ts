import type { Completion } from "../contract/schemas/completions.ts";
import { type CallOptions, underDeadline } from "./deadline.ts";
import { fromProblem, unexpectedAnswer, unreachable } from "./error-classes.ts";
import { type FollowedCompletion, type FollowQuery, followCompletions, type ReadPage } from "./follow.ts";
import { isProblem, parse, type Query, type Transport } from "./transport.ts";

/** Position after which outcomes are received. With a `store`, a saved position precedes it. */
export type OutcomesQuery = Pick<FollowQuery, "after" | "epoch" | "store">;

/** Pages of the feed for one reader, each from the position after the page before. */
export interface PageSource {
  readonly readPage: ReadPage;
  readonly close: () => void;
}

/** Receives outcomes, and continues after the last one when the connection or the node was lost. */
export async function* followOutcomes(
  { readPage, close }: PageSource,
  query: OutcomesQuery,
  call: CallOptions,
): AsyncGenerator<FollowedCompletion, void, undefined> {
  try {
    yield* followCompletions(readPage, query, call, true);
  } finally {
    close();
  }
}

/** Time in ms without a byte after which the connection counts as dead: a node says something every 25 seconds. */
const LONGEST_SILENCE_MS = 60_000;

interface Stream {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly decode: (bytes: Uint8Array | undefined) => string;
  /** Text that was received and is not read yet. */
  text: string;
}

/** Reads a node's server-sent events, each as a page. After an error, the next page comes from a new stream. */
export function streamedPages(transport: Transport, silenceMs = LONGEST_SILENCE_MS): PageSource {
  let stream: Stream | null = null;
  const close = () => {
    // Cancelling a connection that broke rejects.
    stream?.reader.cancel().catch(() => undefined);
    stream = null;
  };
  const readPage: ReadPage = async ({ after, epoch }, call) => {
    try {
      stream ??= await openStream(transport, { after, epoch }, call);
      return await nextPage(stream, { ...call, timeoutMs: silenceMs });
    } catch (error) {
      close();
      throw error;
    }
  };
  return { readPage, close };
}

async function openStream(transport: Transport, query: Query, call: CallOptions): Promise<Stream> {
  const body = await transport<ReadableStream<Uint8Array>>({
    at: "get /tx/completions/stream",
    streams: true,
    // Refuses JSON with status 200, as from a proxy.
    expects: "getReader",
    query,
    ...call,
  });
  const decoder = new TextDecoder();
  return { reader: body.getReader(), decode: (bytes) => decoder.decode(bytes, { stream: true }), text: "" };
}

async function nextPage(stream: Stream, call: CallOptions) {
  for (;;) {
    const end = stream.text.indexOf("\n\n");
    if (end < 0) {
      stream.text += await nextText(stream, call);
      continue;
    }
    const event = stream.text.slice(0, end);
    stream.text = stream.text.slice(end + 2);
    const page = pageOf(event);
    if (page !== null) return page;
  }
}

async function nextText({ reader, decode }: Stream, limits: CallOptions) {
  const lost = (cause: unknown) => {
    limits.signal?.throwIfAborted();
    return unreachable("the stream", cause);
  };
  const { done, value } = await underDeadline("the stream was silent", limits, () => reader.read()).catch((error) => {
    throw lost(error);
  });
  if (done) throw lost(undefined);
  return decode(value);
}

/** Reads one event; null if it has no position, as a comment of a proxy. */
function pageOf(event: string) {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(event)?.[1] ?? "";
  const kind = field("event");
  const data = parse(field("data"));
  if (isProblem(data)) throw fromProblem(data);
  const [, epoch, next] = /^(\d+):(\d+)$/.exec(field("id")) ?? [];
  if (next === undefined) return null;
  if (kind === "completion" && data === undefined) throw unexpectedAnswer(200, event);
  return { epoch: Number(epoch), items: kind === "completion" ? [data as Completion] : [], next: Number(next) };
}
