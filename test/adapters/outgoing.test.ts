/** Tests requests of the node to endpoints and to other nodes, against servers that violate the protocol. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { createTransport } from "../../src/adapters/evm/rpc/transport.ts";
import { createHastyClock } from "../support/hasty-clock.ts";
import { PeerRows } from "../support/peer-rows.ts";
import { sampleTxId } from "../support/scripted-api.ts";

/** A clock with long timeouts: the client's deadline must not end a request that has its own abort signal. */
const PATIENT = createHastyClock(20_000);

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function askEndpoint(url: string, clock = createHastyClock()): Promise<unknown> {
  const rpc = createTransport({
    url,
    clock,
    report: () => undefined,
    maxResponseBytes: 1024 * 1024,
  });
  return rpc.request("eth_chainId", []).finally(() => rpc.close());
}

async function askPeer(url: string, clock = createHastyClock()): Promise<unknown> {
  const rows = new PeerRows();
  rows.register(rows.peers(), url);
  const peers = rows.peers({ clock });
  rows.register(peers, "http://sender");
  const creates = [{ txId: sampleTxId(1), owner: null, request: {} }];
  return peers.create(url, creates, { repeat: false, withinMs: 20_000 }).finally(() => peers.close());
}

describe.each([
  ["an endpoint", askEndpoint, /answered with more bytes than allowed/],
  ["another node", askPeer, /UND_ERR_RES_EXCEEDED_MAX_SIZE/],
])("outgoing HTTP to %s", (who, ask, tooMuch) => {
  // protects [Attacks] src/adapters/evm/rpc/http.ts, src/adapters/peers/http-peers.ts
  it(`a request to ${who} follows no redirect`, async () => {
    let followed = 0;
    const elsewhere = await serve((_, response) => {
      followed++;
      response.end("{}");
    });
    const url = await serve((_, response) => response.writeHead(307, { location: elsewhere }).end());
    await expect(ask(url, PATIENT)).rejects.toThrow();
    expect(followed).toBe(0);
  });

  // protects [Attacks] src/adapters/evm/rpc/http.ts, src/adapters/peers/http-peers.ts
  it(`a request to ${who} fails if the response exceeds the size limit`, async () => {
    let closed = 0;
    const url = await serve((_, response) => {
      // Send twice the maximum size, then nothing more: the read must end because of the size, not because of a
      // timeout.
      const more = (megabytes: number) => {
        if (megabytes > 0) response.write("x".repeat(1024 * 1024), () => more(megabytes - 1));
      };
      response.on("close", () => closed++);
      more(64);
    });
    await expect(ask(url, PATIENT)).rejects.toThrow(tooMuch);
    await expect.poll(() => closed).toBe(1);
  });

  // protects [Attacks] src/adapters/evm/rpc/http.ts, src/adapters/peers/http-peers.ts
  it(`a request to ${who} does not wait for a slow response beyond its timeout`, async () => {
    const url = await serve((_, response) => void response.write("{"));
    await expect(ask(url)).rejects.toThrow(/within|in \d+ ms/);
  });
});
