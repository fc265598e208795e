/** Tests WebSockets at `/rpc`: who may open one, responses, subscriptions, and how a connection ends. */
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ApiKey, HttpServerOptions } from "../../../../src/adapters/http/exchange/options.ts";
import { createHttpServer, type HttpServer } from "../../../../src/adapters/http/server.ts";
import type { FencepostApi } from "../../../../src/application/operations/calls.ts";
import { NO_QUOTAS, type Principal } from "../../../../src/domain/keys/principal.ts";
import type { PassedAnswer } from "../../../../src/ports/chain.ts";
import { createManualClock } from "../../../doubles/manual-clock.ts";
import { deferred } from "../../../support/deferred.ts";
import { httpOptions } from "../../../support/http-app.ts";
import { TestSocket } from "../../../support/rpc-socket.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const servers: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

const hashOf = (n: number, branch = 0) => `0x${(branch * 1_000_000 + n).toString(16).padStart(64, "0")}`;
const header = (n: number, branch = 0, parent = hashOf(n - 1, branch)) => ({
  ...{ number: `0x${n.toString(16)}`, hash: hashOf(n, branch), parentHash: parent, transactions: [hashOf(77)] },
});

/** A fake chain whose blocks the test sets. */
class Blocks {
  asked = 0;
  readonly all = new Map<string, ReturnType<typeof header>>();
  latest = header(1);

  add(block: ReturnType<typeof header>): void {
    this.all.set(block.hash, block);
    this.latest = block;
  }

  /** The logs of a block; null: the endpoint does not respond. */
  logsOf: (hash: string) => readonly object[] | null = () => [];
  readonly filters: Readonly<Record<string, unknown>>[] = [];

  readonly askChain: FencepostApi["askChain"] = async (_, method, params) => {
    const [name] = (params ?? []) as readonly [string];
    this.asked++;
    if (method === "eth_getLogs") return this.logs(name as unknown as Readonly<Record<string, unknown>>);
    if (method === "eth_getBlockByNumber") return { kind: "result", result: this.latest };
    if (method === "eth_getBlockByHash") return { kind: "result", result: this.all.get(name) ?? null };
    return { kind: "result", result: "0x9" };
  };

  private logs(filter: Readonly<Record<string, unknown>>): PassedAnswer {
    this.filters.push(filter);
    if (filter.address === "nonsense") return { kind: "error", code: -32602, message: "invalid address" };
    if (filter.blockHash === undefined) return { kind: "result", result: [] };
    const logs = this.logsOf(String(filter.blockHash));
    return logs === null ? { kind: "error", code: -32000, message: "unknown block" } : { kind: "result", result: logs };
  }
}

/** A log, with only those fields that the tests compare. */
const log = (hash: string, at: number) => ({ blockHash: hash, logIndex: at, removed: false });

const key = (name: string, more: Partial<ApiKey> = {}): ApiKey => ({
  name,
  secret: `${name}-0123456789abcdef`,
  ...more,
});
const as = (name: string) => ({ authorization: `Bearer ${name}-0123456789abcdef` });
const chains = [{ chainId: 1, reachable: true, head: 1, headSince: null, signersAway: 0, troubles: [] }];
const readiness = async () => ({ ready: true, database: true, chains, draining: false });

async function serve(script: Partial<FencepostApi> = {}, options: Partial<HttpServerOptions> & Sockets = {}) {
  const clock = createManualClock();
  const server = createHttpServer({ ...httpOptions({ readiness, ...script }, { clock }), ...options });
  servers.push(server);
  const { url } = await server.listen("127.0.0.1", 0);
  return { server, url, rpc: `${url}/rpc`, clock };
}
type Sockets = Pick<Parameters<typeof createHttpServer>[0], "loadUpgrader">;

const UPGRADE = [
  ...["GET /rpc HTTP/1.1", "host: x", "connection: Upgrade", "upgrade: websocket", "sec-websocket-version: 13"],
  ...["sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "", ""],
].join("\r\n");

/** Sends raw bytes and returns the first bytes of the response. */
async function raw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(bytes);
  const [answer] = await once(socket, "data");
  socket.destroy();
  return String(answer);
}

/** The response to a refused request for a WebSocket. */
async function refusal(url: string, headers: Readonly<Record<string, string>> = {}) {
  const upgrade = {
    ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  const asked = request(url, { headers: { ...upgrade, ...headers } }).end();
  asked.on("upgrade", (_, socket) => void socket.destroy(new Error("it was let in")));
  const [response] = await once(asked, "response");
  let body = "";
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode as number, body };
}

describe("a WebSocket at /rpc", () => {
  // protects [JSON-RPC] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("answers reads, batches and errors like an HTTP POST", async () => {
    const { rpc } = await serve(new Blocks());
    const socket = await TestSocket.open(rpc);
    expect(await socket.call("eth_chainId")).toMatchObject({ result: "0x1" });
    expect(await socket.call("eth_gasPrice")).toMatchObject({ result: "0x9" });
    expect(await socket.call("eth_sign")).toMatchObject({ error: { code: -32601 } });
    socket.say("{");
    expect((await socket.until(({ error }) => error?.code === -32700)).id).toBeNull();
    socket.say(JSON.stringify([1, 2].map((id) => ({ jsonrpc: "2.0", id: `b${id}`, method: "eth_chainId" }))));
    expect(await socket.until((said) => Array.isArray(said))).toMatchObject([{ id: "b1" }, { id: "b2" }]);
  });

  // protects [JSON-RPC] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("serves only the chain given in its path", async () => {
    const { rpc } = await serve();
    expect(await (await TestSocket.open(`${rpc}/1`)).call("eth_chainId")).toMatchObject({ result: "0x1" });
    expect((await refusal(`${rpc}/5`)).status).toBe(400);
    expect((await refusal(`${rpc}/mainnet`)).status).toBe(400);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-sockets.ts
  it("requires an API key like an HTTP POST; the key may be in the path", async () => {
    const options = { apiKeys: [key("shop"), key("signs", { scopes: ["sign"] })] };
    const { rpc } = await serve({}, options);
    expect((await refusal(rpc)).status).toBe(401);
    expect((await refusal(rpc, as("nobody"))).status).toBe(401);
    expect((await refusal(rpc, as("signs"))).status).toBe(403);
    expect(await (await TestSocket.open(rpc, as("shop"))).call("eth_chainId")).toMatchObject({ result: "0x1" });
    const inPath = `/key/${key("shop").secret}`;
    expect((await refusal(`${rpc}${inPath}`)).status).toBe(404);
    const open = await serve({}, { ...options, rpc: { foreignRaw: "refuse", keyInPath: true } });
    const socket = await TestSocket.open(`${open.rpc}${inPath}`);
    expect(await socket.call("eth_chainId")).toMatchObject({ result: "0x1" });
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-sockets.ts
  it("refuses web pages of other sites, and unknown host names", async () => {
    const { rpc } = await serve({}, { wire: { hosts: { own: ["127.0.0.1"] }, origins: ["https://wallet.example"] } });
    expect((await refusal(rpc, { origin: "https://evil.example" })).status).toBe(403);
    expect((await refusal(rpc, { origin: "null" })).status).toBe(403);
    expect((await refusal(rpc, { host: "evil.example" })).status).toBe(403);
    const socket = await TestSocket.open(rpc, { origin: "https://wallet.example" });
    expect(await socket.call("eth_chainId")).toMatchObject({ result: "0x1" });
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts
  it("is closed at the next message or ping after its API key was revoked", async () => {
    const known = new Map<string, Principal>();
    const found = { name: "shop", scopes: new Set(["read"]), signers: null, chains: null };
    const liveKeys = { find: () => known.get("shop") ?? null };
    known.set("shop", { ...found, ...NO_QUOTAS } as Principal);
    const { rpc, clock } = await serve(new Blocks(), { apiKeys: [], liveKeys });
    const [speaking, silent] = [await TestSocket.open(rpc, as("shop")), await TestSocket.open(rpc, as("shop"))];
    expect(await speaking.call("eth_gasPrice")).toMatchObject({ result: "0x9" });
    known.clear();
    speaking.say(JSON.stringify({ jsonrpc: "2.0", id: 7, method: "eth_gasPrice" }));
    expect((await speaking.closed).code).toBe(1008);
    expect(speaking.received.some(({ id }) => id === 7)).toBe(false);
    await clock.advance(15_000);
    expect((await silent.closed).code).toBe(1008);
  });

  it("is refused with advice if the npm package ws is not installed", async () => {
    const { rpc } = await serve({}, { loadUpgrader: async () => null });
    const { status, body } = await refusal(rpc);
    expect([status, JSON.parse(body).detail]).toEqual([503, expect.stringContaining("npm install ws")]);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("leaves no connection open if it is refused", async () => {
    const { server, rpc } = await serve({}, { apiKeys: [key("shop")] });
    const { hostname, port } = new URL(rpc);
    const stays = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    stays.on("error", () => undefined);
    stays.write(UPGRADE);
    const [answer] = await once(stays, "data");
    expect(String(answer)).toMatch(/^HTTP\/1.1 401 /);
    await server.close();
    stays.destroy();
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("is limited in number per API key and per node", async () => {
    const { rpc } = await serve({}, { apiKeys: [key("busy"), key("calm")] });
    const open = await Promise.all(Array.from({ length: 64 }, () => TestSocket.open(rpc, as("busy"))));
    expect((await refusal(rpc, as("busy"))).status).toBe(503);
    await TestSocket.open(rpc, as("calm"));
    open[0]?.close();
    await open[0]?.closed;
    await expect.poll(() => TestSocket.open(rpc, as("busy"))).toBeDefined();
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-sockets.ts
  it("is counted by the name of its API key, for any secret and spelling of the header", async () => {
    const second = { ...key("busy"), secret: "another-0123456789abcdef" };
    const options = { apiKeys: [key("busy"), second], rpc: { foreignRaw: "refuse", keyInPath: true } } as const;
    const { rpc } = await serve({}, options);
    const { secret } = key("busy");
    const spellings = ["Bearer ", "bearer ", "BEARER ", "Bearer   "].map((scheme) => `${scheme}${secret}`);
    const names = [...spellings, `Bearer ${second.secret}`];
    const opening = Array.from({ length: 63 }, (_, at) => {
      return TestSocket.open(rpc, { authorization: names[at % names.length] as string });
    });
    await Promise.all([...opening, TestSocket.open(`${rpc}/key/${secret}`)]);
    for (const authorization of names) expect((await refusal(rpc, { authorization })).status).toBe(503);
    expect((await refusal(`${rpc}/key/${secret}`)).status).toBe(503);
  });

  it.each([
    "/rpc/../api/v1/tx",
    "/rpc/%2e%2e/api/v1/tx",
    "/rpc/1/../../api/v1/tx",
    "/rpc\\..\\api\\v1\\tx",
    "/rpc/key/..\\..\\api\\v1\\tx",
    "/rpc//api/v1/tx",
    "/rpc/1/2",
    // protects [Attacks] src/adapters/http/sockets/rpc-sockets.ts
  ])("is served only at /rpc and /rpc/{chainId}, not at %s", async (path) => {
    const create = vi.fn(async () => Promise.reject(new Error("it was dispatched")));
    const { url } = await serve(
      { create },
      {
        apiKeys: [key("shop", { scopes: ["read", "submit"] })],
      },
    );
    const answer = await raw(
      url,
      UPGRADE.replace("GET /rpc ", `GET ${path} `).replace(
        "host: x",
        `host: x\r\nauthorization: ${as("shop").authorization}`,
      ),
    );
    expect(answer).toMatch(/^HTTP\/1\.1 404 /);
    expect(create).not.toHaveBeenCalled();
  });

  it("is refused with 400 if the request has two Host headers (RFC 9112, 3.2)", async () => {
    const { url } = await serve();
    expect(await raw(url, UPGRADE.replace("host: x", "host: x\r\nHost: x"))).toMatch(/^HTTP\/1\.1 400 /);
  });

  // protects [JSON-RPC] src/adapters/http/sockets/rpc-sockets.ts
  it("is refused on other paths, and an offer to upgrade to HTTP/2 is ignored", async () => {
    const create = vi.fn(async () => Promise.reject(new Error("the body arrived")));
    const { url } = await serve({ create });
    expect((await refusal(`${url}/healthz`)).status).toBe(200);
    expect((await refusal(`${url}/api/v1/tx`)).status).not.toBe(101);
    const body = JSON.stringify({ chainId: 1 });
    const offer = {
      connection: "Upgrade, HTTP2-Settings",
      upgrade: "h2c",
      "http2-settings": "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    };
    const length = String(Buffer.byteLength(body));
    const headers = { ...offer, "content-type": "application/json", "content-length": length };
    const asked = request(`${url}/api/v1/tx`, { method: "POST", headers });
    asked.flushHeaders();
    asked.end(body);
    const [response] = await once(asked, "response");
    response.resume();
    expect([response.statusCode, create.mock.calls.length]).toEqual([500, 1]);
  });
});

describe("a WebSocket subscription", () => {
  const heads = (socket: TestSocket, id: unknown) =>
    socket.received.flatMap(({ params }) => (params && params.subscription === id ? [params.result.hash] : []));

  async function subscribed(blocks = new Blocks(), headers: Readonly<Record<string, string>> = {}) {
    const served = await serve(blocks);
    const socket = await TestSocket.open(served.rpc, headers);
    const { result: id } = await socket.call("eth_subscribe", ["newHeads"]);
    const until = (hash: string) =>
      socket.until(({ params }) => params?.result.hash === hash && params.subscription === id);
    return { ...served, blocks, socket, id, until };
  }

  // protects [JSON-RPC] src/adapters/http/rpc/head-announcer.ts
  it("to newHeads gets the header of each block once, in order", async () => {
    const { blocks, clock, socket, id, until } = await subscribed();
    blocks.add(header(2));
    await clock.advance(1_000);
    expect((await until(hashOf(2))).params?.result).toEqual({ number: "0x2", hash: hashOf(2), parentHash: hashOf(1) });
    for (const n of [3, 4, 5]) blocks.add(header(n));
    await clock.advance(1_000);
    await until(hashOf(5));
    await clock.advance(3_000);
    expect(heads(socket, id)).toEqual([2, 3, 4, 5].map((n) => hashOf(n)));
  });

  // protects [JSON-RPC] src/adapters/http/rpc/head-announcer.ts
  it("gets, for newHeads, the blocks of the new branch after a reorg", async () => {
    const { blocks, clock, socket, id, until } = await subscribed();
    for (const n of [2, 3]) {
      blocks.add(header(n));
      await clock.advance(1_000);
    }
    blocks.add(header(3, 7, hashOf(2)));
    blocks.add(header(4, 7));
    await clock.advance(1_000);
    await until(hashOf(4, 7));
    expect(heads(socket, id)).toEqual([hashOf(2), hashOf(3), hashOf(3, 7), hashOf(4, 7)]);
  });

  // protects [JSON-RPC] src/adapters/http/rpc/head-announcer.ts
  it("gets the first block after the confirmation of the subscription", async () => {
    const blocks = new Blocks();
    const looked = deferred();
    const { askChain } = blocks;
    const slow: FencepostApi["askChain"] = async (...asked) => {
      const answer = await askChain(...asked);
      await looked.promise;
      return answer;
    };
    const { rpc, clock } = await serve({ askChain: slow });
    const socket = await TestSocket.open(rpc);
    const subscribing = socket.call("eth_subscribe", ["newHeads"]);
    await waitUntil(() => blocks.asked > 0, "the chain is asked what stands already");
    expect(await socket.call("eth_chainId")).toMatchObject({ result: "0x1" });
    expect(socket.received).toHaveLength(1);
    looked.resolve();
    await subscribing;
    blocks.add(header(2));
    await clock.advance(1_000);
    await socket.until(({ params }) => params?.result.hash === hashOf(2));
  });

  // protects [JSON-RPC] src/adapters/http/rpc/head-announcer.ts
  it("shares one poll of the chain with all other subscriptions", async () => {
    const { blocks, clock, socket, rpc, id } = await subscribed();
    const other = await TestSocket.open(rpc);
    const { result: second } = await other.call("eth_subscribe", ["newHeads"]);
    blocks.asked = 0;
    await clock.advance(5_000);
    expect(blocks.asked).toBe(5);
    expect(await socket.call("eth_unsubscribe", [id])).toMatchObject({ result: true });
    expect(await socket.call("eth_unsubscribe", [id])).toMatchObject({ result: false });
    blocks.add(header(2));
    await clock.advance(1_000);
    await other.until(({ params }) => params?.subscription === second);
    expect(heads(socket, id)).toEqual([]);
    other.close();
    await other.closed;
    await expect.poll(() => clock.armedTimers).toBe(1);
    blocks.asked = 0;
    await clock.advance(5_000);
    expect(blocks.asked).toBe(0);
  });

  it("survives an endpoint that does not answer", async () => {
    const blocks = new Blocks();
    const { clock, socket, id, until } = await subscribed(blocks);
    const sound = blocks.latest;
    for (const odd of [null, "0x", {}, { hash: "0x1", parentHash: 7 }]) {
      blocks.latest = odd as unknown as typeof sound;
      await clock.advance(1_000);
    }
    blocks.add(header(2));
    await clock.advance(1_000);
    await until(hashOf(2));
    expect(heads(socket, id)).toEqual([hashOf(2)]);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("is refused for an unsupported event", async () => {
    const { socket } = await subscribed();
    for (const kind of ["newPendingTransactions", "syncing", 7, null])
      expect(await socket.call("eth_subscribe", [kind])).toMatchObject({ error: { code: -32601 } });
    for (let n = 1; n < 32; n++) expect((await socket.call("eth_subscribe", ["newHeads"])).error).toBeUndefined();
    expect(await socket.call("eth_subscribe", ["newHeads"])).toMatchObject({ error: { code: -32005 } });
    socket.say(JSON.stringify([{ jsonrpc: "2.0", id: "in", method: "eth_subscribe", params: ["newHeads"] }]));
    expect(await socket.until((said) => Array.isArray(said))).toMatchObject([{ error: { code: -32601 } }]);
    const { rpc } = await serve(new Blocks(), { apiKeys: [key("sender", { scopes: ["submit"] })] });
    const sender = await TestSocket.open(rpc, as("sender"));
    expect(await sender.call("eth_subscribe", ["newHeads"])).toMatchObject({ error: { code: 4100 } });
  });
});

describe("a WebSocket subscription to logs", () => {
  async function subscribed(filter: unknown) {
    const blocks = new Blocks();
    const served = await serve(blocks);
    const socket = await TestSocket.open(served.rpc);
    const { result: id } = await socket.call("eth_subscribe", ["logs", filter]);
    const results = () =>
      socket.received.flatMap(({ params }) => (params && params.subscription === id ? [params.result] : []));
    return { ...served, blocks, socket, results };
  }

  // protects [JSON-RPC] src/adapters/http/sockets/log-subscription.ts
  it("gets the logs of each new block in order", async () => {
    const { blocks, clock, socket, results } = await subscribed({ address: "0xaa", topics: [null, "0xbb"] });
    blocks.logsOf = (hash) => (hash === hashOf(2) ? [] : [log(hash, 0), log(hash, 1)]);
    for (const n of [2, 3, 4]) blocks.add(header(n));
    await clock.advance(1_000);
    await socket.until(({ params }) => params?.result.blockHash === hashOf(4) && params.result.logIndex === 1);
    blocks.add(header(4, 7, hashOf(3)));
    blocks.add(header(5, 7));
    await clock.advance(1_000);
    await socket.until(({ params }) => params?.result.blockHash === hashOf(5, 7) && params.result.logIndex === 1);
    const of = (hash: string) => [log(hash, 0), log(hash, 1)];
    const gone = [log(hashOf(4), 1), log(hashOf(4), 0)].map((each) => ({ ...each, removed: true }));
    expect(results()).toEqual([...of(hashOf(3)), ...of(hashOf(4)), ...gone, ...of(hashOf(4, 7)), ...of(hashOf(5, 7))]);
    expect(blocks.filters.at(-1)).toEqual({ address: "0xaa", topics: [null, "0xbb"], blockHash: hashOf(5, 7) });
  });

  // protects [JSON-RPC] src/adapters/http/sockets/log-subscription.ts
  it("waits for a block that an endpoint does not have yet", async () => {
    const { blocks, clock, socket, results } = await subscribed({});
    let refusals = 3;
    blocks.logsOf = (hash) => (refusals-- > 0 ? null : [log(hash, 0)]);
    blocks.add(header(2));
    await waitUntil(async () => {
      await clock.advance(1_000);
      return results().length > 0;
    }, "the log is told");
    blocks.logsOf = () => null;
    blocks.add(header(3));
    let code = 0;
    void socket.closed.then((end) => {
      code = end.code;
    });
    await waitUntil(async () => {
      await clock.advance(1_000);
      return code !== 0;
    }, "it is closed");
    expect(code).toBe(1011);
  });

  it.each([
    ["names blocks", { fromBlock: "0x1" }, -32602],
    ["is not an object", "all", -32602],
    ["is refused by the chain", { address: "nonsense" }, -32602],
  ])("is refused at once if its filter is invalid: the filter %s", async (_, filter, code) => {
    const { rpc } = await serve(new Blocks());
    const socket = await TestSocket.open(rpc);
    expect(await socket.call("eth_subscribe", ["logs", filter])).toMatchObject({ error: { code } });
    expect((await socket.call("eth_subscribe", ["logs"])).error).toBeUndefined();
  });
});

describe("an open WebSocket", () => {
  // protects [JSON-RPC] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/server.ts
  it("is closed when the node drains", async () => {
    const answer = deferred();
    const began = deferred();
    const askChain: FencepostApi["askChain"] = async () => {
      began.resolve();
      await answer.promise;
      return { kind: "result", result: "0x5" };
    };
    const { server, rpc } = await serve({ askChain });
    const [asking, idle] = [await TestSocket.open(rpc), await TestSocket.open(rpc)];
    const asked = asking.call("eth_gasPrice");
    await began.promise;
    server.drain();
    expect((await idle.closed).code).toBe(1001);
    expect((await refusal(rpc)).status).toBe(503);
    answer.resolve();
    expect(await asked).toMatchObject({ result: "0x5" });
    expect((await asking.closed).code).toBe(1001);
    await server.close();
  });

  // protects [JSON-RPC] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/server.ts
  it("does not prevent a node from closing", async () => {
    const began = deferred();
    const askChain: FencepostApi["askChain"] = () => {
      began.resolve();
      return new Promise(() => undefined);
    };
    const { server, rpc, clock } = await serve({ askChain });
    const socket = await TestSocket.open(rpc);
    socket.say(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_gasPrice" }));
    await began.promise;
    const closing = server.close(50);
    await clock.advance(50);
    await closing;
    expect((await socket.closed).code).toBe(1006);
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("is closed if the client does not answer pings", async () => {
    const { rpc, clock } = await serve();
    const { hostname, port } = new URL(rpc);
    const silent = connect(Number(port), hostname);
    silent.write(UPGRADE);
    const [head] = await once(silent, "data");
    expect(String(head)).toMatch(/^HTTP\/1.1 101 /);
    silent.resume();
    await clock.advance(15_000);
    await clock.advance(15_000);
    await once(silent, "close");
  });

  // protects [Attacks] src/adapters/http/sockets/rpc-socket.ts, src/adapters/http/sockets/rpc-sockets.ts
  it("is closed if the client sends binary data, or a message over the size limit", async () => {
    const { rpc } = await serve();
    const binary = await TestSocket.open(rpc);
    binary.say(new Uint8Array([1, 2, 3]));
    expect((await binary.closed).code).toBe(1003);
    const large = await TestSocket.open(rpc);
    large.say(`"${"0".repeat(8 * 1024 * 1024)}"`);
    expect((await large.closed).code).toBe(1009);
  });
});
