import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createHttpApp } from "./app.ts";
import type { HttpServerOptions } from "./options.ts";

export type { ApiKey, HttpLogger, HttpServerOptions, PeerReceiver, ResponseReport, StaticFile } from "./options.ts";

export type HttpServer = ReturnType<typeof createHttpServer>;

const DEFAULT_GRACE_MS = 5_000;

export function createHttpServer(options: HttpServerOptions) {
  const { app, longPolls, arrivals } = createHttpApp(options);
  const shared = serverLike(app.server).on("request", app.routing);
  for (const server of [app.server, shared]) server.on("connection", arrivals.came);
  let closing: Promise<void> | null = null;

  const close = async (graceMs: number): Promise<void> => {
    longPolls.drain();
    const cancel = options.clock.after(graceMs, () => {
      app.server.closeAllConnections();
      shared.closeAllConnections();
    });
    const sharedClosed = new Promise<void>((resolve) => shared.close(() => resolve()));
    shared.closeIdleConnections();
    await Promise.all([app.close(), sharedClosed]).finally(cancel);
  };

  return {
    /** Port 0 takes any free one; `url` names it. */
    async listen(host: string, port: number) {
      // Exclusive: within a worker, a port that is not shared is its own.
      await app.listen({ host, port, exclusive: true });
      return { url: urlOf(host, app.server.address()) };
    },
    /** The same routes on a port that the workers of this machine share. */
    async listenShared(host: string, port: number) {
      shared.listen({ host, port });
      await once(shared, "listening");
      return { url: urlOf(host, shared.address()) };
    },
    /** Requests are still taken, but `/readyz` says 503, long polls end with what they have, and connections are not kept. */
    drain: () => longPolls.drain(),
    /** Refuses new connections at once, lets requests in hand finish for at most `graceMs`, then cuts what is left. */
    close(graceMs = DEFAULT_GRACE_MS) {
      closing ??= close(graceMs);
      return closing;
    },
  };
}

/** With the same limits, and the same answer to what is not HTTP. */
export function serverLike(first: Server): Server {
  const { requestTimeout, headersTimeout, keepAliveTimeout } = first;
  const second = createServer({ requestTimeout, headersTimeout, keepAliveTimeout });
  for (const answer of first.listeners("clientError")) second.on("clientError", answer as () => void);
  return second;
}

function urlOf(host: string, address: ReturnType<import("node:net").Server["address"]>): string {
  if (address === null || typeof address === "string") throw new Error("the server does not listen on a port");
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}
