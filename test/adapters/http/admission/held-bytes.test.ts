/**
 * Tests that memory for a request body is reserved before the body is read, within limits of the API key and of the
 * node.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { heldBytes } from "../../../../src/adapters/http/admission/held-bytes.ts";
import type { ApiKey } from "../../../../src/adapters/http/exchange/options.ts";
import { createHttpServer, type HttpServer } from "../../../../src/adapters/http/server.ts";
import { httpOptions } from "../../../support/http-app.ts";

const MIB = 1024 * 1024;

const servers: HttpServer[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => server.close(0)));
});

const key = (name: string): ApiKey => ({ name, secret: `${name}-0123456789abcdefghijkl` });
const chains = [{ chainId: 1, reachable: true, head: 1, headSince: null, signersAway: 0, troubles: [] }];
const readiness = async () => ({ ready: true, database: true, chains, draining: false });

async function serve() {
  const server = createHttpServer(httpOptions({ readiness }, { apiKeys: [key("weak"), key("other")] }));
  servers.push(server);
  const { url } = await server.listen("127.0.0.1", 0);
  return Number(new URL(url).port);
}

interface Begun {
  readonly socket: Socket;
  /** Resolves with the whole response so far, once it contains this text. */
  answered(text: string): Promise<string>;
}

/**
 * Sends the header of a request and waits until the server has read it: Node responds with 100 before it passes the
 * request on.
 */
async function begin(port: number, name: string, length: string, path = "/rpc"): Promise<Begun> {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  socket.on("error", () => undefined);
  const answered = async (wanted: string) => {
    while (!text.includes(wanted)) await once(socket, "data");
    return text;
  };
  const head = [
    ...[`POST ${path} HTTP/1.1`, "host: x", `authorization: Bearer ${key(name).secret}`],
    ...["content-type: application/json", length, "expect: 100-continue", "", ""],
  ];
  socket.write(head.join("\r\n"));
  await answered("100 Continue");
  return { socket, answered };
}

const LARGE = `content-length: ${8 * MIB}`;
const CALL = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}';
const SMALL = `content-length: ${CALL.length}`;

async function isAnswered(port: number, name: string): Promise<void> {
  const { socket, answered } = await begin(port, name, SMALL);
  socket.write(CALL);
  expect(await answered('"result"')).toContain("HTTP/1.1 200 ");
}

describe("request bodies that are announced but not yet sent", () => {
  // protects [Attacks] src/adapters/http/exchange/reserve-bodies.ts, src/adapters/http/admission/held-bytes.ts
  it("are refused with 429 beyond the byte limit of their API key", async () => {
    const port = await serve();
    for (let n = 0; n < 4; n++) await begin(port, "weak", LARGE);
    const refused = await (await begin(port, "weak", LARGE)).answered('"code"');
    expect(refused).toContain("HTTP/1.1 429 ");
    expect(refused).toMatch(/retry-after: \d/);
    expect(refused).toContain('"code":"QUOTA_EXCEEDED"');
    expect(refused).toContain('"rule":"bodyBytes"');
    await isAnswered(port, "other");
  });

  it.each(["/rpc", "/api/v1/tx/batch"])("are counted on every route that reads a body: %s", async (path) => {
    const port = await serve();
    for (let n = 0; n < 4; n++) await begin(port, "weak", LARGE, path);
    expect(await (await begin(port, "weak", LARGE, "/rpc")).answered('"code"')).toContain("HTTP/1.1 429 ");
  });

  // protects [Attacks] src/adapters/http/exchange/reserve-bodies.ts, src/adapters/http/admission/held-bytes.ts
  it("are no longer counted once the connection ends", async () => {
    const port = await serve();
    const begun = await Promise.all([1, 2, 3, 4].map(() => begin(port, "weak", LARGE)));
    begun[0]?.socket.destroy();
    const [last] = begun.slice(-1);
    // The body is complete now. It is refused, because it is not JSON.
    last?.socket.write(" ".repeat(8 * MIB));
    await last?.answered("-32700");
    for (let n = 0; n < 2; n++) {
      const again = await begin(port, "weak", LARGE);
      again.socket.write(" ".repeat(8 * MIB));
      await again.answered("-32700");
    }
    await begin(port, "weak", LARGE);
    await begin(port, "weak", LARGE);
    expect(await (await begin(port, "weak", LARGE)).answered('"code"')).toContain("HTTP/1.1 429 ");
  });

  // protects [Attacks] src/adapters/http/exchange/reserve-bodies.ts, src/adapters/http/admission/held-bytes.ts
  it("are counted on arrival if the request has no Content-Length", async () => {
    const port = await serve();
    const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${" ".repeat(bytes)}\r\n`;
    for (let n = 0; n < 4; n++) await begin(port, "weak", LARGE.replace(String(8 * MIB), String(8 * MIB - 2 ** 18)));
    const slow = await begin(port, "weak", "transfer-encoding: chunked");
    slow.socket.write(chunk(2 ** 19));
    slow.socket.write(chunk(2 ** 20));
    expect(await slow.answered('"code"')).toContain('"code":"QUOTA_EXCEEDED"');
    await isAnswered(port, "weak");
    const other = await begin(port, "other", "transfer-encoding: chunked");
    other.socket.write(`${chunk(2 ** 20)}${CALL.length.toString(16)}\r\n${CALL}\r\n0\r\n\r\n`);
    expect(await other.answered('"result"')).toContain("HTTP/1.1 200 ");
  });

  it("are refused unread if their API key is unknown", async () => {
    const port = await serve();
    const stranger = await begin(port, "nobody", LARGE);
    expect(await stranger.answered('"code"')).toContain("HTTP/1.1 401 ");
    const nowhere = await begin(port, "weak", "content-length: 1000", "/nothing");
    expect(await nowhere.answered('"code"')).toContain("HTTP/1.1 404 ");
  });
});

describe("bytes reserved for request bodies", () => {
  it("are limited per API key and per node", () => {
    const held = heldBytes({ ofKey: 100, ofNode: 250 });
    const first = held("a");
    expect(first.grow(60)).toBeNull();
    expect(first.grow(40)).toBeNull();
    expect(held("a").grow(1)).toMatchObject({
      code: "QUOTA_EXCEEDED",
      extras: { rule: "bodyBytes", limit: 100, retryAfterSeconds: 1 },
    });
    expect(held("b").grow(100)).toBeNull();
    const third = held("c");
    expect(third.grow(50)).toBeNull();
    expect(third.grow(1)).toMatchObject({ code: "QUEUE_FULL", extras: { retryAfterSeconds: 1 } });
    first.release();
    first.release();
    expect(held("a").grow(100)).toBeNull();
    expect(held("a").grow(1)?.code).toBe("QUOTA_EXCEEDED");
    expect(third.grow(1)?.code).toBe("QUEUE_FULL");
  });

  it("are limited only per node if no API keys are required", () => {
    const held = heldBytes({ ofKey: 100, ofNode: 250 });
    expect(held(null).grow(250)).toBeNull();
    expect(held(null).grow(1)?.code).toBe("QUEUE_FULL");
  });
});
