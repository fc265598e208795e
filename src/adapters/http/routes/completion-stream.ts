/** The completion feed as server-sent events: `GET /api/v1/tx/completions/stream`. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CompletionsPage } from "../../../application/api.ts";
import { Completion, CompletionStreamQuery } from "../../../contract/schemas/completions.ts";
import { defined } from "../../../domain/defined.ts";
import { invalid } from "../../../domain/errors.ts";
import { accepts } from "../exchange/accept.ts";
import type { Authenticate } from "../exchange/auth.ts";
import { type HttpServerOptions, type RouteContext, writerOf } from "../exchange/options.ts";
import { present } from "../exchange/present-answer.ts";
import { errorConverter } from "../exchange/problems.ts";
import { queryReader } from "../exchange/query.ts";
import { FeedStream } from "../streams/feed-stream.ts";
import { openStreams } from "../streams/open-streams.ts";
import { placeIn } from "../streams/server-events.ts";

const HEADERS = {
  "content-type": "text/event-stream",
  // A proxy that compresses or buffers would hold events back. nginx reads the second header.
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
  // The connection ends with the stream.
  connection: "close",
} as const;

interface StreamOptions extends Pick<HttpServerOptions, "logger" | "onRefused" | "onStreams"> {
  readonly authenticate: Authenticate;
}

export function completionStream(app: FastifyInstance, context: RouteContext, options: StreamOptions): void {
  const readQuery = queryReader(CompletionStreamQuery);
  const enter = openStreams(options.onStreams);
  const { authenticate } = options;
  const tools = { ...context, authenticate, convert: errorConverter(options), itemText: itemTexts(context) };
  app.get("/api/v1/tx/completions/stream", async (request, reply) => {
    const { after = 0, epoch } = readQuery(request.query);
    refuseOtherTypes(request.headers.accept);
    const place = lastPlace(request) ?? { seq: after, ...defined({ epoch }) };
    if (reply.raw.destroyed) return reply.hijack();
    reply.raw.once("close", enter(request.principal.name));
    const stream = new FeedStream(tools, { request, reply }, place);
    // Read before the response begins, so that a wrong position is an error response.
    const first = await stream.read(0);
    // If the caller has disconnected meanwhile, there is no response.
    if (reply.raw.destroyed) return reply.hijack();
    reply.headers(HEADERS);
    return reply.send(request.method === "HEAD" ? undefined : stream.body(first, place.seq));
  });
}

/** Refuses a client that only takes JSON: it would wait for the end of a response that has none. */
function refuseOtherTypes(accept = "*/*") {
  if (accepts(accept, ["text/event-stream", "text/*", "*/*"])) return;
  throw invalid("accept", "must allow text/event-stream, because this route answers with nothing else");
}

/** Position of the last event that the client received. Browsers send it when they connect again. */
function lastPlace({ headers }: FastifyRequest) {
  const id = headers["last-event-id"];
  return id === undefined || id === "" ? null : placeIn(String(id));
}

/** Formats each item once, however many streams send it: streams at the same position share their records. */
function itemTexts({ checksum, clock }: RouteContext) {
  const texts = new WeakMap<CompletionsPage["items"][number], string>();
  return (item: CompletionsPage["items"][number], reply: FastifyReply): string => {
    const known = texts.get(item);
    if (known !== undefined) return known;
    const shown = present(Completion, item, { checksum, now: clock.now() }) as Record<string, unknown>;
    const text = String(writerOf(Completion, reply)(shown));
    texts.set(item, text);
    return text;
  };
}
