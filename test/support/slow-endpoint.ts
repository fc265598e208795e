/** An endpoint with slow sends that accepts or refuses batches. It records when each send arrived. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { SimulatedServer } from "../doubles/simulated-chain/server.ts";
import { waitUntil } from "./wait-until.ts";

export interface SlowEndpoint {
  readonly url: string;
  /** Arrival times of sends on this process's monotonic clock, one per transaction. */
  readonly arrivals: readonly number[];
  /** Delay in ms of the response to a send from now on; the chain gets the send first. */
  sendMs: number;
  takesBatches: boolean;
  close(): Promise<void>;
}

/** Waits for this many blocks, so that a test can check that something does not happen in that time. */
export async function blocksLater({ chain }: SimulatedServer, blocks: number): Promise<void> {
  const until = chain.head.number + blocks;
  await waitUntil(() => chain.head.number >= until, `${blocks} blocks have passed`, { everyMs: 5 });
}

const NO_BATCHES = { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "batch requests are not supported" } };

export async function startSlowEndpoint(target: string): Promise<SlowEndpoint> {
  const arrivals: number[] = [];
  const closing = new AbortController();
  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint: SlowEndpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    sendMs: 0,
    takesBatches: true,
    close: async () => {
      closing.abort();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return endpoint;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString("utf8");
    const sends = body.split('"eth_sendRawTransaction"').length - 1;
    if (body.startsWith("[") && !endpoint.takesBatches) return void response.end(JSON.stringify(NO_BATCHES));
    for (let at = 0; at < sends; at++) arrivals.push(systemClock.monotonicMs());
    const headers = { "content-type": "application/json" };
    const answer = await (await fetch(target, { method: "POST", headers, body, signal: closing.signal })).text();
    const reply = () => response.writeHead(200, headers).end(answer);
    if (sends === 0) reply();
    else systemClock.after(endpoint.sendMs, reply);
  }
}
