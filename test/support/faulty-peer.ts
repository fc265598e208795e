import Fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { deferred } from "./deferred.ts";

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: FastifyRequest["headers"];
  readonly body: unknown;
}

/** A fault of one request: an arbitrary response, no response, or a broken connection. */
export type PeerFault =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly body: unknown;
      readonly headers?: Record<string, string>;
    }
  | { readonly kind: "hang" | "reset" | "truncate" };

/** A server in the place of a node: it responds as the test says and records the requests that it receives. */
export interface FaultyPeer {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  readonly connections: () => number;
  behave(fault: PeerFault): void;
  /** Resolves when the next request has arrived. */
  nextRequest(): Promise<void>;
  close(): Promise<void>;
}

export async function startFaultyPeer(): Promise<FaultyPeer> {
  const requests: SeenRequest[] = [];
  let fault: PeerFault = { kind: "hang" };
  let connections = 0;
  let arrival = deferred();
  const app = Fastify({ bodyLimit: 32 * 1024 * 1024, forceCloseConnections: true });
  app.server.on("connection", () => {
    connections++;
  });
  app.all("/*", async (request, reply) => {
    const { method, url, headers, body } = request;
    requests.push({ method, url, headers, body });
    arrival.resolve();
    arrival = deferred();
    return act(fault, request, reply);
  });
  return {
    url: await app.listen({ host: "127.0.0.1", port: 0 }),
    requests,
    connections: () => connections,
    behave: (next) => {
      fault = next;
    },
    nextRequest: () => arrival.promise,
    close: () => app.close(),
  };
}

function act(fault: PeerFault, request: FastifyRequest, reply: FastifyReply): unknown {
  if (fault.kind === "answer") {
    const text = typeof fault.body === "string" ? fault.body : JSON.stringify(fault.body);
    return reply
      .code(fault.status)
      .headers({ "content-type": "application/json", ...fault.headers })
      .send(text);
  }
  reply.hijack();
  if (fault.kind === "reset") request.raw.socket.resetAndDestroy();
  if (fault.kind === "truncate") {
    reply.raw.writeHead(200, { "content-length": "1000" });
    reply.raw.write('{"results":[', () => request.raw.socket.destroy());
  }
  return undefined;
}
