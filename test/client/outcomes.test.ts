import { afterEach, describe, expect, it } from "vitest";
import { createHttpServer, type HttpServer } from "../../src/adapters/http/server.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { createClient, EpochChangedError, type FeedPlace, FeedTruncatedError } from "../../src/client/index.ts";
import { streamedPages } from "../../src/client/outcomes.ts";
import { createTransport } from "../../src/client/transport.ts";
import { httpOptions } from "../support/http-app.ts";
import { ScriptedFeed } from "../support/scripted-feed.ts";
import { type Answering, lost, problem, scriptedFetch } from "../support/scripted-fetch.ts";

const encoder = new TextEncoder();
const outcome = (seq: number, epoch = 5) =>
  `id: ${epoch}:${seq}\nevent: completion\ndata: ${JSON.stringify({ seq, epoch, requestId: `order-${seq}-é` })}\n\n`;
const begin = (after = 0) => `id: 5:${after}\nevent: begin\ndata: {"epoch":5,"after":${after}}\n\n`;
const ending = (code: string, status: number, members: object = {}, event = "end") =>
  `id: 5:2\nevent: ${event}\ndata: ${JSON.stringify({ code, status, detail: "scripted", ...members })}\n\n`;
const moved = ending("EPOCH_CHANGED", 409, { epoch: 6, resumeAfter: 1 }, "epoch");

/** Streams that were cancelled by the client. */
let cancelled = 0;

/** A stream that sends these parts, and then nothing more. */
function stream(...parts: readonly (string | Uint8Array)[]): Response {
  const bytes = parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part));
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const next = bytes.shift();
      return next === undefined ? new Promise(() => undefined) : controller.enqueue(next);
    },
    cancel: () => void cancelled++,
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** A stream whose connection breaks after these parts. */
function broken(...parts: readonly string[]): Response {
  const left = [...parts];
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const next = left.shift();
      if (next === undefined) controller.error(new TypeError("terminated"));
      else controller.enqueue(encoder.encode(next));
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function client(answering: Answering, url: string | readonly string[] = "http://node.example") {
  const { fetch, asked } = scriptedFetch(answering);
  const paths = () => asked.map(({ base, path }) => `${base}${path}`.replace("/api/v1/tx/completions/stream", " "));
  return { outcomes: createClient({ url, fetch, timeoutMs: 150 }).outcomes, asked, paths };
}

/** Reads until `count` outcomes were received. */
async function take(outcomes: AsyncIterable<{ readonly seq: number }>, count: number) {
  const taken: number[] = [];
  for await (const { seq } of outcomes) {
    taken.push(seq);
    if (taken.length === count) break;
  }
  return taken;
}

afterEach(() => {
  cancelled = 0;
});

describe("receiving outcomes with the SDK", () => {
  it("yields each with the epoch of the feed, from the given position on", async () => {
    const { outcomes, asked, paths } = client(() => stream(begin(7), outcome(8, 5)));
    const { value } = await outcomes({ after: 7, epoch: 5 }).next();
    expect(value).toEqual({ seq: 8, epoch: 5, requestId: "order-8-é", feedEpoch: 5 });
    expect(paths()).toEqual(["http://node.example ?after=7&epoch=5"]);
    expect(asked[0]?.headers.get("accept")).toBe("text/event-stream");
  });

  it("understands events that arrive in pieces, byte by byte", async () => {
    const bytes = [...encoder.encode(`: a proxy's comment\n\n${begin()}${outcome(1)}id: 5:1\n\n${outcome(2)}`)];
    const { outcomes } = client(() => stream(...bytes.map((byte) => Uint8Array.of(byte))));
    const read: unknown[] = [];
    for await (const { seq, requestId } of outcomes()) if (read.push([seq, requestId]) === 2) break;
    expect(read).toEqual([
      [1, "order-1-é"],
      [2, "order-2-é"],
    ]);
  });

  // protects [The feed] src/client/outcomes.ts
  it("continues after the last outcome if the connection is lost", async () => {
    const { outcomes, paths } = client((_, turn) => {
      if (turn === 0) return broken(begin(), outcome(1) + outcome(2) + outcome(3).slice(0, 30));
      return turn === 1 ? lost() : stream(begin(2), outcome(3));
    });
    expect(await take(outcomes(), 3)).toEqual([1, 2, 3]);
    const again = "http://node.example ?after=2&epoch=5";
    expect(paths()).toEqual(["http://node.example ", again, again]);
  });

  it("continues at another node if its node drains", async () => {
    const draining = ending("UNAVAILABLE", 503);
    const answering: Answering = ({ base }, turn) => {
      if (base === "http://b.example") return stream(begin(2), outcome(3));
      return turn === 0 ? stream(begin(), outcome(1), outcome(2), draining) : problem("UNAVAILABLE", 503);
    };
    const { outcomes, paths } = client(answering, ["http://a.example", "http://b.example"]);
    expect(await take(outcomes(), 3)).toEqual([1, 2, 3]);
    expect(paths().at(-1)).toBe("http://b.example ?after=2&epoch=5");
  });

  it("continues after a position without an outcome, as of others' items", async () => {
    const { outcomes, paths } = client((_, turn) =>
      turn === 0 ? broken(begin(), outcome(1), "id: 5:90\n\n") : stream(begin(90), outcome(91)),
    );
    expect(await take(outcomes(), 2)).toEqual([1, 91]);
    expect(paths()[1]).toBe("http://node.example ?after=90&epoch=5");
  });

  it("gives up a connection on which nothing arrives, not even a sign of life", async () => {
    const { fetch } = scriptedFetch(() => stream(begin(), outcome(1)));
    const { readPage, close } = streamedPages(createTransport({ url: "http://node.example", fetch }), 20);
    expect(await readPage({}, {})).toEqual({ epoch: 5, items: [], next: 0 });
    expect(await readPage({}, {})).toMatchObject({ next: 1 });
    await expect(readPage({}, {})).rejects.toMatchObject({ code: "UNREACHABLE", retry: "later" });
    expect(cancelled).toBe(1);
    close();
  });

  it("closes the connection when the reader stops", async () => {
    const { outcomes } = client(() => stream(begin(), outcome(1)));
    expect(await take(outcomes(), 1)).toEqual([1]);
    expect(cancelled).toBe(1);
  });

  it("ends with the caller's reason at an abort, and closes the connection", async () => {
    const controller = new AbortController();
    const { outcomes } = client(() => stream(begin(), outcome(1)));
    const reading = outcomes({}, { signal: controller.signal });
    await reading.next();
    const waiting = reading.next();
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(cancelled).toBe(1);
  });

  // protects [The feed] src/client/follow.ts
  it("ends at a changed epoch without a store, because the caller has to compare", async () => {
    const { outcomes } = client(() => stream(begin(), outcome(1), outcome(2), moved));
    const failure = await take(outcomes(), 9).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(EpochChangedError);
    expect(failure).toMatchObject({ epoch: 6, resumeAfter: 1 });
    expect(cancelled).toBe(1);
  });

  it("continues in the new epoch with a store", async () => {
    const saved: FeedPlace[] = [];
    const store = { load: () => ({ seq: 1, epoch: 5 }), save: (place: FeedPlace) => void saved.push(place) };
    const { outcomes, paths } = client((_, turn) =>
      turn === 0 ? stream(begin(1), outcome(2), moved) : stream("id: 6:1\n\n", outcome(2, 6), outcome(3, 6)),
    );
    expect(await take(outcomes({ store }), 3)).toEqual([2, 2, 3]);
    expect(paths()).toEqual(["http://node.example ?after=1&epoch=5", "http://node.example ?after=1&epoch=6"]);
    expect(saved.map(({ seq, epoch }) => `${seq}@${epoch}`)).toEqual(["2@5", "1@6", "2@6"]);
  });

  it.each([
    ["the feed was truncated", ending("FEED_TRUNCATED", 410, { resumeAfter: 9 }), "FEED_TRUNCATED"],
    ["the API key was revoked", ending("UNAUTHENTICATED", 401), "UNAUTHENTICATED"],
    ["an outcome is not JSON", "id: 5:3\nevent: completion\ndata: {\n\n", "UNEXPECTED_ANSWER"],
  ])("ends if %s", async (_, last, code) => {
    const { outcomes } = client(() => stream(begin(), outcome(1), last));
    const reading = outcomes();
    await reading.next();
    await expect(reading.next()).rejects.toMatchObject({ code });
  });

  it("ends if the position is refused, or if something else answers", async () => {
    const truncated = client(() => problem("FEED_TRUNCATED", 410, { resumeAfter: 4 }));
    await expect(truncated.outcomes().next()).rejects.toBeInstanceOf(FeedTruncatedError);
    const other = client(() => Response.json({ items: [] }));
    await expect(other.outcomes().next()).rejects.toMatchObject({ code: "UNEXPECTED_ANSWER" });
  });
});

describe("receiving outcomes from a node", () => {
  const servers: HttpServer[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close(0);
  });

  async function serve(feed: ScriptedFeed, port = 0) {
    const server = createHttpServer(httpOptions({ completions: feed.completions }, { clock: systemClock }));
    servers.push(server);
    const { url } = await server.listen("127.0.0.1", port);
    return { server, url, port: Number(new URL(url).port) };
  }

  // protects [The feed] src/client/outcomes.ts, src/adapters/http/streams/feed-stream.ts
  it("misses none and repeats none while the node is restarted again and again", async () => {
    const feed = new ScriptedFeed(systemClock);
    feed.append(10);
    let node = await serve(feed);
    const { url } = node;
    const taken: number[] = [];
    for await (const { seq } of createClient({ url }).outcomes()) {
      taken.push(seq);
      if (seq % 10 !== 0) continue;
      if (seq === 100) break;
      feed.append(10);
      await node.server.close(0);
      node = await serve(feed, node.port);
    }
    expect(taken).toEqual(Array.from({ length: 100 }, (_, at) => at + 1));
  });
});
