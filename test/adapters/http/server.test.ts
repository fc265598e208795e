import { once } from "node:events";
import { Agent, get, request } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createHttpApp } from "../../../src/adapters/http/app.ts";
import type { HttpServerOptions } from "../../../src/adapters/http/exchange/options.ts";
import { createHttpServer, type HttpServer, serverLike } from "../../../src/adapters/http/server.ts";
import type { CompletionsQuery } from "../../../src/application/api.ts";
import type { FencepostApi } from "../../../src/application/operations/calls.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { deferred } from "../../support/deferred.ts";
import { httpOptions } from "../../support/http-app.ts";
import { sampleCompletion, sampleCreated, sampleTxId } from "../../support/scripted-api.ts";

/** Tests behaviour of the HTTP server that only a real socket shows. */

const servers: HttpServer[] = [];

async function serve(script: Partial<FencepostApi> = {}, options: Partial<HttpServerOptions> = {}) {
  const server = createHttpServer(httpOptions(script, options));
  servers.push(server);
  const { url } = await server.listen("127.0.0.1", 0);
  return { server, url };
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

/**
 * A feed of completions that sends nothing until the caller's wait is aborted. `began` and `cut` resolve when the wait
 * begins and when it is aborted.
 */
function silentFeed() {
  const began = deferred();
  const cut = deferred();
  const completions = vi.fn(({ signal }: CompletionsQuery) => {
    if (signal === undefined) return Promise.resolve({ epoch: 1, items: [sampleCompletion()], next: 1 });
    began.resolve();
    return new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => {
        cut.resolve();
        reject(signal.reason);
      });
    });
  });
  return { completions, began: began.promise, cut: cut.promise };
}

describe("HTTP long polls", () => {
  it("end without an error when the client disconnects", async () => {
    const feed = silentFeed();
    const logger = { error: vi.fn() };
    const { url } = await serve({ completions: feed.completions }, { logger });
    const client = get(`${url}/api/v1/tx/completions?wait=30`).on("error", () => undefined);
    await feed.began;
    client.destroy();
    await feed.cut;
    await servers.at(-1)?.close();
    expect(feed.completions).toHaveBeenCalledTimes(1);
    expect(logger.error).not.toHaveBeenCalled();
  });

  it("do not end while the client is connected", async () => {
    const answered = deferred();
    const seen: boolean[] = [];
    const { url } = await serve({
      completions: async ({ signal, after }) => {
        await answered.promise;
        seen.push(signal?.aborted ?? true);
        return { epoch: 1, items: [], next: after };
      },
    });
    const poll = fetch(`${url}/api/v1/tx/completions?wait=30&after=4`);
    await (await fetch(`${url}/healthz`)).text();
    answered.resolve();
    expect(await (await poll).json()).toEqual({ epoch: 1, items: [], next: 4 });
    expect(seen).toEqual([false]);
  });

  it("are answered with the current data when the node drains", async () => {
    const feed = silentFeed();
    const { server, url } = await serve({ completions: feed.completions });
    const poll = fetch(`${url}/api/v1/tx/completions?wait=30`);
    await feed.began;
    server.drain();
    const response = await poll;
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ epoch: 1, next: 1, items: [{ seq: 1 }] });
  });
});

describe("an HTTP request body", () => {
  // protects [Attacks] src/adapters/http/exchange/problems.ts
  it("is not logged as a failure if its client disconnects in the middle", async () => {
    const logger = { error: vi.fn() };
    const create = vi.fn(() => Promise.resolve(sampleCreated()));
    const { server, url } = await serve({ create }, { logger });
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(
      "POST /api/v1/tx HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n",
    );
    // At this point the node has read the request's header and waits for the body.
    await once(socket, "data");
    socket.end("{");
    await once(socket, "close");
    await server.close();
    expect(create).not.toHaveBeenCalled();
    expect(logger.error).not.toHaveBeenCalled();
  });
});

describe("the HTTP server of a node", () => {
  it("still serves requests while the server drains", async () => {
    const { server, url } = await serve({
      create: () => Promise.resolve(sampleCreated()),
      completions: ({ after }) => Promise.resolve({ epoch: 1, items: [], next: after }),
      readiness: () => Promise.resolve({ ready: true, database: true, chains: [], draining: false }),
    });
    server.drain();
    server.drain();
    const created = await fetch(`${url}/api/v1/tx`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(created.status).toBe(202);
    expect(created.headers.get("connection")).toBe("close");
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/api/v1/tx/completions?wait=30`)).status).toBe(200);
  });

  it("finishes open requests on close", async () => {
    const entered = deferred();
    const finish = deferred();
    const { server, url } = await serve({
      create: async () => {
        entered.resolve();
        await finish.promise;
        return sampleCreated();
      },
    });
    const inHand = fetch(`${url}/api/v1/tx`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    await entered.promise;
    const closed = server.close();
    expect(server.close()).toBe(closed);
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
    finish.resolve();
    expect((await inHand).status).toBe(202);
    await closed;
  });

  it("aborts requests that are still open after the grace period", async () => {
    const clock = createManualClock();
    const entered = deferred();
    const { server, url } = await serve(
      {
        create: () => {
          entered.resolve();
          return new Promise<never>(() => undefined);
        },
      },
      { clock },
    );
    const hanging = fetch(`${url}/api/v1/tx`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    const cut = expect(hanging).rejects.toThrow();
    await entered.promise;
    const closed = server.close(1_000);
    await clock.advance(1_000);
    await closed;
    await cut;
  });

  it("reports a port that is already in use", async () => {
    const { url } = await serve();
    const second = createHttpServer(httpOptions());
    await expect(second.listen("127.0.0.1", Number(new URL(url).port))).rejects.toMatchObject({ code: "EADDRINUSE" });
    await second.close();
  });
});

describe("an HTTP request on the wire", () => {
  // protects [Attacks] src/adapters/http/admission/host-and-origin.ts
  it("is refused with 400 if it has two Host headers", async () => {
    const { url } = await serve();
    for (const path of ["/healthz", "/rpc", "/nothing"]) {
      const head = `GET ${path} HTTP/1.1\r\nhost: x\r\nHOST: x\r\nconnection: close\r\n\r\n`;
      const answer = await raw(url, head);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toContain('"code":"INVALID_REQUEST"');
    }
  });

  async function raw(url: string, bytes: string): Promise<string> {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let answer = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      answer += chunk;
    });
    socket.end(bytes);
    await once(socket, "close");
    return answer;
  }

  it("is refused with the error path `url` if the URL is too long", async () => {
    const { url } = await serve();
    const answer = await raw(url, `GET /?x=${"y".repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ status: 400, path: "url" });
  });

  it.each([
    ["not HTTP at all", "HELLO THERE\r\n\r\n"],
    ["a header without end", `GET /healthz HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(20_000)}\r\n\r\n`],
    ["two lengths", "POST /api/v1/tx HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}"],
  ])("is answered with a problem document if it has %s, on exclusive and shared ports", async (_, bytes) => {
    const { url, server } = await serve();
    for (const port of [url, (await server.listenShared("127.0.0.1", 0)).url]) {
      const answer = await raw(port, bytes);
      const [head = "", body = ""] = answer.split("\r\n\r\n");
      expect(head).toMatch(/^HTTP\/1\.1 400 /);
      expect(head).toContain("application/problem+json");
      expect(JSON.parse(body)).toMatchObject({ code: "INVALID_REQUEST", status: 400 });
    }
  });

  // protects [Attacks] src/adapters/http/server.ts
  it("has a timeout on a shared port too", () => {
    const { app } = createHttpApp(httpOptions());
    expect(serverLike(app.server).requestTimeout).toBe(30_000);
  });

  it("creates nothing if its body is incomplete", async () => {
    const create = vi.fn(() => Promise.resolve(sampleCreated()));
    const { url, server } = await serve({ create });
    const head =
      'POST /api/v1/tx HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"a":';
    await raw(url, head);
    await server.close();
    expect(create).not.toHaveBeenCalled();
  });

  it("is answered with 413 if it has a chunked body over the limit", async () => {
    const create = vi.fn(() => Promise.resolve(sampleCreated()));
    const { url } = await serve({ create });
    const outgoing = request(`${url}/api/v1/tx`, { method: "POST", headers: { "content-type": "application/json" } });
    outgoing.on("error", () => undefined);
    const answered = once(outgoing, "response");
    outgoing.write(`{"metadata":"${"x".repeat(150 * 1024)}`);
    outgoing.write("x".repeat(150 * 1024));
    const [response] = await answered;
    expect(response.statusCode).toBe(413);
    outgoing.destroy();
    expect(create).not.toHaveBeenCalled();
  });

  it("is answered with 413 if it has a Content-Length over the limit", async () => {
    const { url } = await serve();
    const response = await fetch(`${url}/api/v1/tx`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: `{"metadata":"${"x".repeat(300 * 1024)}"}`,
    });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  });

  it.each([
    ["is announced", "content-length: 900000", "x".repeat(500_000), "x".repeat(400_000)],
    ["is not", "transfer-encoding: chunked", `7a120\r\n${"x".repeat(500_000)}\r\n`, "3\r\nxxx\r\n0\r\n\r\n"],
  ])("is answered before a too large body is complete if the body's length %s", async (...how) => {
    const [, length, begin, rest] = how;
    const { url } = await serve();
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let answer = "";
    socket.setEncoding("utf8").on("data", (chunk) => {
      answer += chunk;
    });
    const receive = async (status: string) => {
      while (!answer.includes(status)) await once(socket, "data");
    };
    const head = `POST /api/v1/tx HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${length}\r\n\r\n`;
    socket.write(head + begin);
    await receive("HTTP/1.1 413 ");
    socket.write(`${rest}GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n`);
    await receive("HTTP/1.1 200 ");
    socket.destroy();
  });

  it("gets its own response among 100 parallel requests over 8 connections", async () => {
    const { url } = await serve({
      create: async ({ requestId }) =>
        sampleCreated({ requestId: String(requestId), txId: sampleTxId(Number(requestId)) }),
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 8 });
    const post = async (n: number) => {
      const outgoing = request(`${url}/api/v1/tx`, {
        method: "POST",
        agent,
        headers: { "content-type": "application/json" },
      });
      outgoing.end(JSON.stringify({ requestId: String(n) }));
      const [response] = await once(outgoing, "response");
      let text = "";
      for await (const chunk of response) text += chunk;
      return JSON.parse(text).txId;
    };
    const ids = await Promise.all(Array.from({ length: 100 }, (_, n) => post(n)));
    agent.destroy();
    expect(ids).toEqual(Array.from({ length: 100 }, (_, n) => sampleTxId(n)));
  });
});
