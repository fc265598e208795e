/** Tests `GET /api/v1/tx/completions/stream` over real connections: events, positions, limits, and how a stream ends. */
import { readFileSync } from "node:fs";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createHttpApp } from "../../../../src/adapters/http/app.ts";
import type { ApiKey, HttpServerOptions } from "../../../../src/adapters/http/exchange/options.ts";
import { MOST_STREAMS } from "../../../../src/adapters/http/streams/open-streams.ts";
import type { CompletionsPage } from "../../../../src/application/api.ts";
import type { FencepostApi } from "../../../../src/application/operations/calls.ts";
import { FencepostError, unavailable } from "../../../../src/domain/errors.ts";
import { NO_QUOTAS, type Principal } from "../../../../src/domain/keys/principal.ts";
import { createManualClock } from "../../../doubles/manual-clock.ts";
import { deferred } from "../../../support/deferred.ts";
import { type EventReader, readEvents } from "../../../support/event-reader.ts";
import { httpOptions } from "../../../support/http-app.ts";
import { CHAIN_ID, RECIPIENT, sampleCompletion } from "../../../support/scripted-api.ts";
import { LANE, ScriptedFeed } from "../../../support/scripted-feed.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const ended: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

const SILENCE_MS = 25_000;
const TAKEN_WITHIN_MS = 10_000;
const LAST_EVENT_MS = 5_000;
const OTHERS = { chainId: CHAIN_ID, signer: RECIPIENT } as const;

const key = (name: string, more: Partial<ApiKey> = {}): ApiKey => ({
  name,
  secret: `${name}-0123456789abcdef`,
  ...more,
});
const as = (name: string) => ({ authorization: `Bearer ${name}-0123456789abcdef` });

async function serve(options: Partial<HttpServerOptions> = {}, script: Partial<FencepostApi> = {}) {
  const clock = createManualClock();
  const feed = new ScriptedFeed(clock);
  const open: number[] = [0];
  const api = { completions: feed.completions, ...script };
  const made = createHttpApp(httpOptions(api, { clock, onStreams: (count) => void open.push(count), ...options }));
  const sockets: Socket[] = [];
  made.app.server.on("connection", (socket) => void sockets.push(socket));
  await made.app.listen({ host: "127.0.0.1", port: 0 });
  const readers: EventReader[] = [];
  ended.push(async () => {
    for (const reader of readers) reader.leave();
    made.app.server.closeAllConnections();
    await made.app.close();
  });
  const { port } = made.app.server.address() as AddressInfo;
  const path = `http://127.0.0.1:${port}/api/v1/tx/completions/stream`;
  const stream = async (query = "", headers: Readonly<Record<string, string>> = {}, method = "GET") => {
    const reader = await readEvents(`${path}${query}`, { headers, method });
    readers.push(reader);
    return reader;
  };
  /** The response to a request that is answered with a problem document. */
  const refusal = async (query = "", headers: Readonly<Record<string, string>> = {}) => {
    const reader = await stream(query, headers);
    await reader.closed();
    return { status: reader.response.statusCode, headers: reader.response.headers, ...JSON.parse(reader.text) };
  };
  const streams = () => open.at(-1);
  const closed = () => waitUntil(() => streams() === 0, "every stream has given its place back");
  return { ...made, clock, feed, port, stream, refusal, streams, closed, sockets };
}

describe("a stream of outcomes", () => {
  it("begins with what the feed has after the position, and goes on as outcomes happen", async () => {
    const { feed, stream } = await serve();
    feed.append(3);
    const reader = await stream("?after=1");
    expect(reader.response.statusCode).toBe(200);
    expect(reader.response.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store, no-transform",
      connection: "close",
    });
    await reader.event(3);
    expect(reader.events[0]).toEqual({ id: "1:1", event: "begin", data: { epoch: 1, after: 1 } });
    feed.append(1);
    await reader.event(4);
    expect(reader.events.slice(1).map(({ id, event, data }) => [id, event, data?.seq])).toEqual([
      ["1:2", "completion", 2],
      ["1:3", "completion", 3],
      ["1:4", "completion", 4],
    ]);
  });

  it("sends each item as GET /tx/completions does", async () => {
    const { feed, stream, app } = await serve();
    feed.append(2);
    const reader = await stream();
    await reader.event(3);
    const { items } = (await app.inject("/api/v1/tx/completions")).json();
    expect(reader.events.slice(1).map(({ data }) => data)).toEqual(items);
  });

  // protects [The feed] src/adapters/http/routes/completion-stream.ts
  it("continues after Last-Event-ID, whatever the address says", async () => {
    const { feed, stream } = await serve();
    feed.append(5);
    const reader = await stream("?after=1&epoch=7", { "last-event-id": "1:3" });
    await reader.event(3);
    expect(reader.seqs).toEqual([4, 5]);
  });

  it("sends the position if nothing else was sent for 25 seconds", async () => {
    const { feed, stream, clock } = await serve();
    feed.append(1);
    const reader = await stream("?after=1");
    await reader.event(1);
    await clock.advance(SILENCE_MS - 1);
    expect(reader.events).toHaveLength(1);
    await clock.advance(1);
    expect(await reader.event(2)).toEqual({ id: "1:1", event: null, data: null });
  });

  it("reads pages only as the connection takes them", async () => {
    const { feed, stream } = await serve();
    feed.append(1_050);
    const reader = await stream();
    await reader.event(1_051);
    expect(reader.seqs).toEqual(Array.from({ length: 1_050 }, (_, at) => at + 1));
  });

  it("is not compressed, whatever the client accepts", async () => {
    const { feed, stream } = await serve();
    feed.append(1);
    const reader = await stream("", { "accept-encoding": "gzip, br" });
    await reader.event(2);
    expect(reader.response.headers["content-encoding"]).toBeUndefined();
    expect(reader.seqs).toEqual([1]);
  });

  it.each(["text/event-stream", "text/*", "*/*", "application/json, text/event-stream;q=0.1"])(
    "is sent to a client that accepts %s",
    async (accept) => {
      const { stream } = await serve();
      expect((await stream("", { accept })).response.statusCode).toBe(200);
    },
  );

  it.each(["application/json", "text/html", "text/event-stream;q=0", ""])(
    "is refused to a client that accepts only %j",
    async (accept) => {
      const { refusal, streams } = await serve();
      expect(await refusal("", { accept })).toMatchObject({ status: 400, code: "INVALID_REQUEST", path: "accept" });
      expect(streams()).toBe(0);
    },
  );

  it("answers HEAD with the headers alone, and opens nothing", async () => {
    const { stream, refusal, feed, streams, clock } = await serve();
    feed.append(1);
    const reader = await stream("", {}, "HEAD");
    await reader.closed();
    expect(reader.response.statusCode).toBe(200);
    expect(reader.response.headers["content-type"]).toBe("text/event-stream");
    expect([streams(), clock.armedTimers, feed.looks]).toEqual([0, 0, 1]);
    expect((await stream("?epoch=5", {}, "HEAD")).response.statusCode).toBe(409);
    expect(await refusal("?limit=5")).toMatchObject({ status: 400, path: "limit" });
  });
});

describe("the position of a stream", () => {
  // protects [The feed] src/adapters/http/streams/server-events.ts
  it.each(["x", "5", "1:", ":5", "1:-1", "1:1:1", "1:1 ", "01:1", "1:1.5", "9999999999999999:1", "1:1, 1:1", "\u00e9"])(
    "is refused if Last-Event-ID is %j",
    async (id) => {
      const { refusal, feed } = await serve();
      const answer = await refusal("", { "last-event-id": id.endsWith(" ") ? `${id}x` : id });
      expect(answer).toMatchObject({ status: 400, code: "INVALID_REQUEST", path: "last-event-id" });
      expect(feed.looks).toBe(0);
    },
  );

  it("is refused before the stream begins if it belongs to another epoch", async () => {
    const { refusal, feed, streams } = await serve();
    feed.append(5);
    feed.restore(3);
    const moved = { status: 409, code: "EPOCH_CHANGED", epoch: 2, resumeAfter: 3 };
    expect(await refusal("", { "last-event-id": "1:5" })).toMatchObject(moved);
    expect(await refusal("?after=5&epoch=99")).toMatchObject(moved);
    expect(streams()).toBe(0);
  });

  it("is refused before the stream begins if that part of the feed was deleted", async () => {
    const { refusal, feed } = await serve();
    feed.append(5);
    feed.position.truncatedThrough = 4;
    expect(await refusal("?after=3")).toMatchObject({ status: 410, code: "FEED_TRUNCATED", resumeAfter: 4 });
  });

  // protects [The feed] src/adapters/http/streams/feed-stream.ts
  it("moves to the place where a new epoch continues, and the event says so", async () => {
    const { feed, stream } = await serve();
    feed.append(5);
    const reader = await stream();
    await reader.event(6);
    feed.restore(3);
    const { id, event, data } = await reader.event(7);
    expect([id, event, data]).toMatchObject(["2:3", "epoch", { code: "EPOCH_CHANGED", epoch: 2, resumeAfter: 3 }]);
    feed.append(1);
    expect(await reader.event(8)).toMatchObject({ id: "2:6", event: "completion", data: { seq: 6, epoch: 2 } });
  });

  it("is named by the last event if the feed was truncated past a reader", async () => {
    const { feed, stream, closed } = await serve();
    feed.append(2);
    const reader = await stream();
    await reader.event(3);
    feed.position.truncatedThrough = 9;
    feed.wake();
    const last = await reader.event(4);
    expect(last).toMatchObject({ id: "1:2", event: "end", data: { code: "FEED_TRUNCATED", resumeAfter: 9 } });
    await reader.closed();
    await closed();
  });
});

describe("a stream that cannot go on", () => {
  it("ends with the problem and its position if the database does not answer", async () => {
    const { feed, stream, closed } = await serve();
    feed.append(1);
    const reader = await stream();
    await reader.event(2);
    feed.failure = unavailable("the database does not answer");
    feed.wake();
    expect(await reader.event(3)).toMatchObject({
      id: "1:1",
      event: "end",
      data: { code: "UNAVAILABLE", status: 503 },
    });
    await reader.closed();
    await closed();
  });

  it("hides an unexpected error, and logs it", async () => {
    const logged: unknown[] = [];
    const { feed, stream } = await serve({ logger: { error: (fields) => void logged.push(fields) } });
    const reader = await stream();
    await reader.event(1);
    feed.failure = new Error("relation secret_table does not exist");
    feed.wake();
    expect(await reader.event(2)).toMatchObject({ event: "end", data: { code: "INTERNAL" } });
    expect(reader.text).not.toContain("secret_table");
    expect(logged).toMatchObject([{ err: feed.failure, route: "/api/v1/tx/completions/stream" }]);
  });

  // protects [The feed] src/adapters/http/streams/feed-stream.ts
  it("ends with its position when the node drains, and no other one begins", async () => {
    const { feed, stream, refusal, longPolls, closed } = await serve();
    feed.append(2);
    const reader = await stream();
    await reader.event(3);
    longPolls.drain();
    expect(await reader.event(4)).toMatchObject({ id: "1:2", event: "end", data: { code: "UNAVAILABLE" } });
    await reader.closed();
    await closed();
    expect(await refusal()).toMatchObject({ status: 503, code: "UNAVAILABLE" });
  });

  it("gives its place back, and reads nothing more, once the reader has disconnected", async () => {
    const { feed, stream, closed, clock } = await serve();
    const reader = await stream();
    await reader.event(1);
    reader.leave();
    await closed();
    const { looks } = feed;
    feed.append(1);
    await clock.advance(SILENCE_MS);
    expect([feed.looks, clock.armedTimers]).toEqual([looks, 0]);
  });

  it("gives its place back if the reader disconnects before the first page is read", async () => {
    const reading = deferred<CompletionsPage>();
    let reads = 0;
    const completions: FencepostApi["completions"] = () => {
      reads++;
      return reading.promise;
    };
    const { stream, streams, closed, sockets, clock } = await serve({}, { completions });
    stream().catch(() => undefined);
    await waitUntil(() => reads === 1, "the first page is being read");
    expect(streams()).toBe(1);
    for (const socket of sockets) socket.destroy();
    await closed();
    reading.resolve({ epoch: 1, items: [], next: 0 });
    await clock.advance(SILENCE_MS);
    expect([reads, clock.armedTimers]).toEqual([1, 0]);
  });
});

describe("a reader that takes nothing", () => {
  /** Opens a stream of a long feed and stops reading; resolves once every buffer between is full. */
  async function stall() {
    const refused: string[] = [];
    const served = await serve({ onRefused: ({ rule }) => void refused.push(rule) });
    served.feed.append(60_000);
    const reader = await served.stream();
    reader.pause();
    await waitUntil(() => served.sockets[0]?.writableNeedDrain, "the connection takes nothing more");
    return { ...served, reader, refused };
  }

  // protects [The feed] src/adapters/http/streams/feed-stream.ts
  it("occupies a page or two of memory", async () => {
    const { feed, clock, sockets, reader } = await stall();
    const { looks } = feed;
    feed.wake();
    await clock.advance(TAKEN_WITHIN_MS - 1);
    expect(feed.looks - looks).toBeLessThanOrEqual(2);
    expect(sockets[0]?.writableLength).toBeLessThan(512 * 1024);
    expect(reader.isClosed).toBe(false);
  });

  // protects [The feed] src/adapters/http/streams/feed-stream.ts
  it("is disconnected after 10 seconds, and its place is free", async () => {
    const { clock, closed, sockets, refused } = await stall();
    await clock.advance(TAKEN_WITHIN_MS);
    expect(refused).toEqual(["streamSeconds"]);
    await clock.advance(LAST_EVENT_MS);
    await waitUntil(() => sockets[0]?.destroyed, "the connection is gone");
    await closed();
    expect(clock.armedTimers).toBe(0);
  });

  it("gets everything before its position, and then the reason, if it reads again in time", async () => {
    const { clock, reader, closed } = await stall();
    await clock.advance(TAKEN_WITHIN_MS);
    reader.resume();
    await reader.closed();
    const { events, seqs } = reader;
    expect(events.at(-1)).toMatchObject({
      id: null,
      event: "end",
      data: { code: "QUOTA_EXCEEDED", rule: "streamSeconds" },
    });
    expect(events.at(-2)?.id).toBe(`1:${seqs.length}`);
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, at) => at + 1));
    await closed();
    expect(clock.armedTimers).toBe(0);
  });
});

describe("the limits on streams", () => {
  // protects [Attacks] src/adapters/http/streams/open-streams.ts
  it("keep a key that opens a thousand to its share", async () => {
    const { stream, streams, refusal } = await serve({ apiKeys: [key("greedy"), key("modest")] });
    const opened = await Promise.all(Array.from({ length: 1_000 }, () => stream("", as("greedy"))));
    const statuses = opened.map(({ response }) => response.statusCode);
    expect(statuses.filter((status) => status === 200)).toHaveLength(MOST_STREAMS.ofKey);
    expect(statuses.filter((status) => status === 429)).toHaveLength(1_000 - MOST_STREAMS.ofKey);
    expect(streams()).toBe(MOST_STREAMS.ofKey);
    const refused = await refusal("", as("greedy"));
    expect(refused).toMatchObject({ code: "QUOTA_EXCEEDED", rule: "streams", limit: MOST_STREAMS.ofKey });
    expect(refused.headers).toMatchObject({ "ratelimit-policy": '"streams";q=32', "retry-after": "5" });
    expect((await stream("", as("modest"))).response.statusCode).toBe(200);
    opened.find(({ response }) => response.statusCode === 200)?.leave();
    await waitUntil(() => streams() === MOST_STREAMS.ofKey, "one of 33 is gone");
    expect((await stream("", as("greedy"))).response.statusCode).toBe(200);
  });

  // protects [Attacks] src/adapters/http/streams/open-streams.ts
  it("keep a node without API keys to its total, and send others to another node", async () => {
    const { stream, refusal } = await serve();
    await Promise.all(Array.from({ length: MOST_STREAMS.ofNode }, () => stream()));
    expect(await refusal()).toMatchObject({ status: 503, code: "UNAVAILABLE" });
  });

  // protects [The feed] src/application/queries/shared-reads.ts
  it("let many streams at the end of the feed cost one read of the database", async () => {
    const { stream, feed } = await serve();
    const readers = await Promise.all(Array.from({ length: 100 }, () => stream()));
    await Promise.all(readers.map((reader) => reader.event(1)));
    const { looks } = feed;
    feed.append(1);
    await Promise.all(readers.map((reader) => reader.event(2)));
    expect(feed.looks - looks).toBeLessThan(10);
  });
});

describe("the API key of a stream", () => {
  const limited = key("limited", { signers: [LANE.signer] });

  // protects [The feed] src/application/authority.ts
  it("sees its own outcomes alone, and the stream says so", async () => {
    const { stream, feed, clock } = await serve({ apiKeys: [limited] });
    feed.append(2, OTHERS);
    feed.append(1);
    const reader = await stream("", as("limited"));
    await reader.event(2);
    expect(reader.events[0]).toEqual({ id: "1:0", event: "begin", data: { epoch: 1, after: 0, filtered: true } });
    feed.append(1_000, OTHERS);
    await clock.advance(SILENCE_MS);
    expect(await reader.event(3)).toEqual({ id: "1:1003", event: null, data: null });
    expect(reader.seqs).toEqual([3]);
    expect(reader.text).not.toContain(RECIPIENT.slice(2, 10));
  });

  // protects [Attacks] src/adapters/http/streams/feed-stream.ts
  it("is asked again before each page is sent", async () => {
    const principal: Principal = { name: "a", scopes: new Set(["read"]), signers: null, chains: null, ...NO_QUOTAS };
    let known: Principal | null = principal;
    const { stream, feed, closed } = await serve({ apiKeys: [], liveKeys: { find: () => known } });
    const reader = await stream("", as("a"));
    await reader.event(1);
    known = null;
    feed.append(1);
    expect(await reader.event(2)).toMatchObject({ id: "1:0", event: "end", data: { code: "UNAUTHENTICATED" } });
    await reader.closed();
    await closed();
    known = principal;
    const other = await stream("", as("a"));
    await other.event(2);
    known = { ...principal, signers: new Set([RECIPIENT]) };
    feed.append(1);
    expect(await other.event(3)).toMatchObject({ id: "1:1", event: "end", data: { code: "UNAVAILABLE" } });
    expect(other.seqs).toEqual([1]);
  });

  it("needs the scope read", async () => {
    const { refusal } = await serve({ apiKeys: [key("writer", { scopes: ["submit"] })] });
    expect(await refusal("", as("writer"))).toMatchObject({ status: 403, code: "FORBIDDEN", rule: "scope:read" });
    expect(await refusal()).toMatchObject({ status: 401, code: "UNAUTHENTICATED" });
  });
});

describe("a reader that vanished without a word", () => {
  /** The row of `/proc/net/tcp` for the server's side of a connection: its timer and when it fires. */
  const timerOf = ({ localPort = 0, remotePort = 0 }: Socket) => {
    const ports = [localPort, remotePort].map((port) => `:${port.toString(16).toUpperCase().padStart(4, "0")}`);
    const row = readFileSync("/proc/net/tcp", "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .find(([, local = "", remote = ""]) => local.endsWith(ports[0] ?? "") && remote.endsWith(ports[1] ?? ""));
    const [timer = "", when = ""] = row?.[5]?.split(":") ?? [];
    return { timer, seconds: Number.parseInt(when, 16) / 100 };
  };

  // protects [The feed] src/adapters/http/app.ts
  it("is probed by the kernel after 10 seconds", async () => {
    const { stream, sockets } = await serve();
    const reader = await stream();
    await reader.event(1);
    const found = await waitUntil(() => {
      const each = timerOf(sockets[0] as Socket);
      return each.timer === "02" ? each : null;
    }, "everything sent is acknowledged, and the keep-alive timer is set");
    expect(found.seconds).toBeLessThanOrEqual(10);
  });
});

it("a page that is sent to many streams is formatted once", async () => {
  const item = sampleCompletion();
  let reads = 0;
  const record = new Proxy(item, {
    get: (target, name) => {
      if (name === "requestId") reads++;
      return Reflect.get(target, name);
    },
  });
  let isAsked = false;
  const completions: FencepostApi["completions"] = async ({ after, signal }) => {
    if (after === 0) return { epoch: 1, items: [record], next: 1 };
    isAsked = true;
    if (signal !== undefined) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    throw new FencepostError("UNAVAILABLE", "over");
  };
  const { stream } = await serve({}, { completions });
  const readers = await Promise.all([stream(), stream(), stream()]);
  await Promise.all(readers.map((reader) => reader.event(2)));
  expect(isAsked).toBe(true);
  expect(reads).toBe(1);
});
