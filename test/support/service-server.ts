/** An HTTP server that imitates a signing service and records requests. A test may supply its own responses. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createTlsServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface ServiceRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface ServiceAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Response body: a string is sent as it is, anything else as JSON. */
  readonly body: unknown;
}

export type ServiceHandler = (request: ServiceRequest) => ServiceAnswer | Promise<ServiceAnswer>;

export interface ServiceServer {
  readonly url: string;
  readonly requests: ServiceRequest[];
  /** If set, the test's own handler answers from now on; if null, the imitated service does. */
  answer: ServiceHandler | null;
  close(): Promise<void>;
}

export async function startServiceServer(handler: ServiceHandler, tls?: ServerOptions): Promise<ServiceServer> {
  const requests: ServiceRequest[] = [];
  // Respond even if the test's handler throws; otherwise it would look like a service that hangs.
  const answerOf = async (request: ServiceRequest): Promise<ServiceAnswer> => {
    try {
      return await (service.answer ?? handler)(request);
    } catch (error) {
      return { status: 500, body: String(error) };
    }
  };
  const listener: RequestListener = async (incoming, outgoing) => {
    const { method = "", url: path = "", headers } = incoming;
    const request = { method, path, headers, body: await text(incoming) };
    requests.push(request);
    const { status = 200, body, headers: said = {} } = await answerOf(request);
    outgoing.writeHead(status, { "content-type": "application/json", ...said });
    outgoing.end(typeof body === "string" ? body : JSON.stringify(body));
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const scheme = tls === undefined ? "http" : "https";
  const service: ServiceServer = {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: null,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return service;
}
