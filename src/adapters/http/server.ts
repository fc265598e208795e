import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { createHttpApp, LOOK_FOR_SLOW_EVERY_MS, TCP_KEEP_ALIVE } from "./app.ts";
import { authenticator } from "./exchange/auth.ts";
import type { HttpServerOptions } from "./exchange/options.ts";
import { type RpcSocketsOptions, rpcSockets } from "./sockets/rpc-sockets.ts";

export type HttpServer = ReturnType<typeof createHttpServer>;

/** Audience of a port. A port for operators serves everything; a port for callers does not serve operators' routes. */
type PortFor = "everybody" | "callers" | "operators";

const DEFAULT_GRACE_MS = 5_000;

/** Creates an HTTP server with one set of routes, checks and limits on any number of ports. */
export function createHttpServer(
  options: Omit<HttpServerOptions, "operators"> & Pick<RpcSocketsOptions, "loadUpgrader">,
) {
  const operators = new WeakSet<Socket>();
  const { app, longPolls, arrivals, bytes } = createHttpApp({ ...options, operators });
  const authenticate = authenticator(options.apiKeys, options.liveKeys);
  const sockets = rpcSockets(app, { ...options, authenticate, bytes });
  const others: Server[] = [];
  let closing: Promise<void> | null = null;

  const open = (server: Server, to: PortFor) => {
    server.on("connection", arrivals.came);
    sockets.openOn(server);
    if (to !== "callers") server.on("connection", (socket) => void operators.add(socket));
  };

  const drain = () => {
    longPolls.drain();
    sockets.leave();
  };

  const close = async (graceMs: number) => {
    drain();
    const cancel = options.clock.after(graceMs, () => {
      sockets.terminate();
      for (const server of [app.server, ...others]) server.closeAllConnections();
    });
    const closed = others.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    for (const server of others) server.closeIdleConnections();
    await Promise.all([app.close(), ...closed]).finally(cancel);
  };

  return {
    /** Listens on a port. 0 chooses a free port; `url` contains it. */
    async listen(host: string, port: number, to: PortFor = "everybody") {
      open(app.server, to);
      // Listen exclusively: in a cluster worker, this port is not shared.
      await app.listen({ host, port, exclusive: true });
      return { url: urlOf(host, app.server.address()) };
    },
    /** Listens on an additional port, which all workers on this machine share. */
    async listenShared(host: string, port: number, to: PortFor = "everybody") {
      const server = serverLike(app.server).on("request", app.routing);
      open(server, to);
      others.push(server);
      server.listen({ host, port });
      await once(server, "listening");
      return { url: urlOf(host, server.address()) };
    },
    /**
     * Starts draining: requests are still served, but `/readyz` answers 503, long polls end, and connections are not
     * kept alive.
     */
    drain,
    /**
     * Closes the server: refuses new connections, lets open requests finish for at most `graceMs`, then closes the
     * rest.
     */
    close(graceMs = DEFAULT_GRACE_MS) {
      closing ??= close(graceMs);
      return closing;
    },
  };
}

/** Creates a server with the same limits as the first, and the same response to malformed HTTP. */
export function serverLike(first: Server): Server {
  const { requestTimeout, headersTimeout, keepAliveTimeout } = first;
  const connectionsCheckingInterval = LOOK_FOR_SLOW_EVERY_MS;
  const times = { requestTimeout, headersTimeout, keepAliveTimeout, connectionsCheckingInterval };
  const second = createServer({ ...times, ...TCP_KEEP_ALIVE });
  for (const answer of first.listeners("clientError")) second.on("clientError", answer as () => void);
  return second;
}

function urlOf(host: string, address: ReturnType<import("node:net").Server["address"]>) {
  if (address === null || typeof address === "string") throw new Error("the HTTP server does not listen on a TCP port");
  return `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
}
