/**
 * Opens WebSockets at `/rpc` for callers that may `POST` there. Before the upgrade, a first call is made with the
 * caller's own Host, Origin and API key. This check refuses pages of other sites, because browsers let any page open
 * sockets to any address.
 */
import type { IncomingMessage, Server } from "node:http";
import { createRequire } from "node:module";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import { FencepostError, unavailable } from "../../../domain/errors.ts";
import { BACKLOG_BYTES, type HeldBytes, heldBytes } from "../admission/held-bytes.ts";
import { refuseTwoHosts } from "../admission/host-and-origin.ts";
import { KeyCounts } from "../admission/key-counts.ts";
import type { Authenticate } from "../exchange/auth.ts";
import type { HttpServerOptions } from "../exchange/options.ts";
import { problemAnswer, rawAnswer } from "../exchange/problems.ts";
import { headAnnouncer } from "../rpc/head-announcer.ts";
import { type Posted, RpcSocket, STILL_ALLOWED, type WebSocketLike } from "./rpc-socket.ts";

export interface RpcSocketsOptions extends Pick<HttpServerOptions, "api" | "clock"> {
  readonly authenticate: Authenticate;
  /** Memory budget per API key and per node, shared with HTTP bodies. */
  readonly bytes: HeldBytes;
  readonly loadUpgrader?: LoadUpgrader;
}

/**
 * Upgrades under the first pattern are handled here, and all of them that do not match the second are refused: `inject`
 * parses a URL, so `/rpc/../api` would be another route.
 */
const UNDER_RPC = /^\/rpc(?:[/\\?]|$)/;
const AT_RPC = /^\/rpc(?:\/[\w-]+)?(?:\/key\/(?<secret>[^/\\?#]+))?(?:\?|$)/;
const MOST_SOCKETS = 512;
const MOST_OF_ONE_KEY = 64;
/** Largest message: the same limit as for a request body. */
const MOST_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Headers of the upgrade request that identify the caller; they are sent with each of its calls. */
const CALLER_HEADERS = ["host", "origin", "authorization"] as const;

export function rpcSockets(app: FastifyInstance, options: RpcSocketsOptions) {
  const { clock, bytes, authenticate, loadUpgrader: load = loadUpgrader } = options;
  const backlog = heldBytes(BACKLOG_BYTES);
  const subscribeHeads = headsByChain(options);
  const open = new Set<RpcSocket>();
  /** Number of open sockets by the API key's name, for all secrets of that key. */
  const counts = new KeyCounts();
  let loading: ReturnType<LoadUpgrader> | null = null;
  let isLeaving = false;

  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { url = "", headers, rawHeaders } = request;
    const path = AT_RPC.exec(url);
    if (path === null) throw new FencepostError("NOT_FOUND", "WebSockets are only served at /rpc");
    refuseTwoHosts(rawHeaders);
    const caller = Object.fromEntries(CALLER_HEADERS.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])));
    const post = async (payload: string): Promise<Posted> => {
      const asked = { ...caller, "content-type": "application/json" };
      const { statusCode: status, body } = await app.inject({ method: "POST", url, headers: asked, payload });
      return { status, body };
    };
    const first = await post(STILL_ALLOWED);
    const chainId = chainIn(first);
    if (chainId === null) return refuse(socket, first.status === 200 ? { ...first, status: 400 } : first);
    // The POST succeeded, so the API key is known.
    const { secret } = path.groups ?? {};
    const shown = secret === undefined ? headers.authorization : `Bearer ${decodeURIComponent(secret)}`;
    const { name: key } = authenticate(shown);
    loading ??= load(MOST_MESSAGE_BYTES);
    const upgrader = await loading;
    if (upgrader === null) throw unavailable("WebSockets need the package ws: npm install ws@8");
    if (isLeaving) throw unavailable("this node is shutting down: connect again");
    if (counts.total >= MOST_SOCKETS || counts.of(key) >= MOST_OF_ONE_KEY) {
      throw unavailable("too many WebSockets are open on this node or with this API key");
    }
    counts.add(key, 1);
    socket.once("close", () => counts.add(key, -1));
    upgrader.handleUpgrade(request, socket, head, (taken) => {
      const hold = { received: () => bytes(key), sent: () => backlog(key) };
      const own = { clock, post, hold, subscribeHeads: subscribeHeads(chainId) };
      const opened = new RpcSocket(taken, own, () => open.delete(opened));
      open.add(opened);
      // Count bytes before `ws` reads them, because it buffers a message that never ends.
      socket.prependListener("data", ({ length }: Buffer) => opened.received(length));
      if (isLeaving) opened.leave();
    });
  };

  return {
    openOn: (server: Server) => {
      server.on("upgrade", (request, socket, head) => {
        // Other upgrades are answered as plain requests: Java's client offers an HTTP/2 upgrade with its first request.
        if (!isSocketAtRpc(request)) return handBack(server, request, socket, head);
        socket.on("error", () => socket.destroy());
        upgrade(request, socket, head).catch((error: unknown) => {
          if (error instanceof FencepostError) refuse(socket, problemAnswer(error));
          else socket.destroy();
        });
      });
    },
    /** Stops opening sockets, and closes the open ones when their calls are answered. */
    leave: () => {
      isLeaving = true;
      for (const each of open) each.leave();
    },
    terminate: () => {
      for (const each of open) each.terminate();
    },
  };
}

/** Creates one announcer of new blocks per chain. */
function headsByChain({ api, clock }: RpcSocketsOptions) {
  const heads = new Map<number, ReturnType<typeof headAnnouncer>>();
  return (chainId: number) => {
    const ask = async (method: string, params: readonly unknown[]) => {
      const answer = await api.askChain(chainId, method, params);
      return answer.kind === "result" ? answer.result : null;
    };
    const announcer = heads.get(chainId) ?? headAnnouncer({ clock, ask });
    heads.set(chainId, announcer);
    return announcer;
  };
}

function isSocketAtRpc({ headers, method, url = "" }: IncomingMessage) {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket" && UNDER_RPC.test(url);
}

/**
 * Reads the chain id from the response to the first call; null if the caller is refused or the chain is not served
 * here.
 */
function chainIn({ status, body }: Posted) {
  if (status !== 200) return null;
  const { result } = JSON.parse(body) as { result?: unknown };
  return typeof result === "string" ? Number(result) : null;
}

/** Passes a request back to the HTTP server without its upgrade headers. */
function handBack(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer) {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = rawHeaders.slice(at, at + 2);
    if (!/^(?:upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}

/** Sends a refusal and destroys the connection: a refused client that does not close would keep it half open. */
function refuse(socket: Duplex, answer: Posted) {
  socket.end(rawAnswer(answer), () => socket.destroy());
}

/** The part of the package `ws` that is used here. npm installs it with Fencepost; the container image does without. */
interface WebSocketUpgrader {
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, taken: (socket: WebSocketLike) => void): void;
}

/** Loads the WebSocket package; resolves with null if it is not installed. */
type LoadUpgrader = (maxPayloadBytes: number) => Promise<WebSocketUpgrader | null>;

interface WebSocketPackage {
  readonly WebSocketServer: new (options: object) => WebSocketUpgrader;
}

/** Use `require`, not `import`, so that `ws` stays outside of the bundle and does not have to be installed. */
const require = createRequire(import.meta.url);

const loadUpgrader: LoadUpgrader = async (maxPayload) => {
  try {
    const { WebSocketServer } = require("ws") as WebSocketPackage;
    // Disable compression: the size of a compressed message is only known after unpacking.
    return new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload });
  } catch {
    return null;
  }
};
