/**
 * Opens WebSockets at `/rpc` for callers that may `POST` there. A first call with the caller's own Host, Origin and
 * key is made before the upgrade. It refuses pages of other sites, which a browser lets open sockets to any address.
 */
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import { problemDocument } from "../../../contract/schemas/problem.ts";
import { FencepostError } from "../../../domain/errors.ts";
import { BACKLOG_BYTES, HeldBytes } from "../admission/held-bytes.ts";
import { refuseTwoHosts } from "../admission/host-and-origin.ts";
import { KeyCounts } from "../admission/key-counts.ts";
import type { Authenticate } from "../exchange/auth.ts";
import type { HttpServerOptions } from "../exchange/options.ts";
import { HeadAnnouncer, type HeadListener } from "../rpc/head-announcer.ts";
import { type Posted, RpcSocket, STILL_ALLOWED } from "./rpc-socket.ts";
import { type LoadUpgrader, loadUpgrader, type WebSocketUpgrader } from "./ws-package.ts";

export interface RpcSocketsOptions extends Pick<HttpServerOptions, "api" | "clock"> {
  readonly authenticate: Authenticate;
  /** Byte budget per key and node, shared with HTTP bodies. */
  readonly bytes: HeldBytes;
  readonly loadUpgrader?: LoadUpgrader;
}

/** Other paths with this prefix are refused: `inject` parses a URL, so `/rpc/../api` would be another route. */
const UNDER_RPC = /^\/rpc(?:[/\\?]|$)/;
const AT_RPC = /^\/rpc(?:\/[\w-]+)?(?:\/key\/(?<secret>[^/\\?#]+))?(?:\?|$)/;
const MOST_SOCKETS = 512;
const MOST_OF_ONE_KEY = 64;
/** The limit of a request body. */
const MOST_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Headers of the upgrade request that identify the caller in all its calls. */
const CALLER_HEADERS = ["host", "origin", "authorization"] as const;

type Caller = Readonly<Partial<Record<(typeof CALLER_HEADERS)[number], string>>>;

export class RpcSockets {
  private readonly app: FastifyInstance;
  private readonly options: RpcSocketsOptions;
  private readonly backlog = new HeldBytes(BACKLOG_BYTES);
  private readonly heads = new Map<number, HeadAnnouncer>();
  private readonly open = new Set<RpcSocket>();
  /** Open sockets by the key's name, for all its secrets. */
  private readonly counts = new KeyCounts();
  private upgrader: Promise<WebSocketUpgrader | null> | null = null;
  private isLeaving = false;

  constructor(app: FastifyInstance, options: RpcSocketsOptions) {
    this.app = app;
    this.options = options;
  }

  openOn(server: Server): void {
    server.on("upgrade", (request, socket, head) => {
      // Java's client offers an HTTP/2 upgrade with its first request: it is answered as a plain request.
      if (!isSocketAtRpc(request)) return handBack(server, request, socket, head);
      socket.on("error", () => socket.destroy());
      this.upgrade(request, socket, head).catch((error: unknown) => {
        if (error instanceof FencepostError) refuse(socket, problem(error));
        else socket.destroy();
      });
    });
  }

  /** Opens no more sockets, and closes the open ones when their calls are answered. */
  leave(): void {
    this.isLeaving = true;
    for (const each of this.open) each.leave();
  }

  terminate(): void {
    for (const each of this.open) each.terminate();
  }

  private async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { url = "", headers, rawHeaders } = request;
    const path = AT_RPC.exec(url);
    if (path === null)
      return refuse(socket, problem(new FencepostError("NOT_FOUND", "WebSockets are only served at /rpc")));
    refuseTwoHosts(rawHeaders);
    const caller = Object.fromEntries(CALLER_HEADERS.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])));
    const post = (text: string) => this.post(url, caller, text);
    const first = await post(STILL_ALLOWED);
    const chainId = chainIn(first);
    if (chainId === null) return refuse(socket, first.status === 200 ? { ...first, status: 400 } : first);
    // The POST succeeded, so the key is known.
    const { secret } = path.groups ?? {};
    const shown = secret === undefined ? headers.authorization : `Bearer ${decodeURIComponent(secret)}`;
    const { name: key } = this.options.authenticate(shown);
    const upgrader = await this.load();
    if (upgrader === null) return refuse(socket, NOT_INSTALLED);
    if (this.isLeaving) return refuse(socket, unavailable("this node is shutting down: connect again"));
    if (this.counts.total >= MOST_SOCKETS || this.counts.of(key) >= MOST_OF_ONE_KEY) {
      return refuse(socket, unavailable("too many WebSockets are open: on this node, or of this key"));
    }
    this.counts.add(key, 1);
    socket.once("close", () => this.counts.add(key, -1));
    upgrader.handleUpgrade(request, socket, head, (taken) => {
      const subscribeHeads = (listener: HeadListener) => this.headsOf(chainId).subscribe(listener);
      const hold = { received: () => this.options.bytes.by(key), sent: () => this.backlog.by(key) };
      const { clock } = this.options;
      const opened = new RpcSocket(taken, { clock, post, subscribeHeads, hold }, () => this.open.delete(opened));
      this.open.add(opened);
      // Counted before `ws` reads them: it buffers a message that never ends.
      socket.prependListener("data", ({ length }: Buffer) => opened.received(length));
      if (this.isLeaving) opened.leave();
    });
  }

  private async post(url: string, caller: Caller, payload: string): Promise<Posted> {
    const headers = { ...caller, "content-type": "application/json" };
    const { statusCode, body } = await this.app.inject({ method: "POST", url, headers, payload });
    return { status: statusCode, body };
  }

  private load(): Promise<WebSocketUpgrader | null> {
    this.upgrader ??= (this.options.loadUpgrader ?? loadUpgrader)(MOST_MESSAGE_BYTES);
    return this.upgrader;
  }

  private headsOf(chainId: number): HeadAnnouncer {
    const { api, clock } = this.options;
    const ask = async (method: string, params: readonly unknown[]): Promise<unknown> => {
      const answer = await api.askChain(chainId, method, params);
      return answer.kind === "result" ? answer.result : null;
    };
    const heads = this.heads.get(chainId) ?? new HeadAnnouncer({ clock, ask });
    this.heads.set(chainId, heads);
    return heads;
  }
}

function isSocketAtRpc({ headers, method, url = "" }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket" && UNDER_RPC.test(url);
}

/** Null: the caller is refused, or the chain is not served here. */
function chainIn({ status, body }: Posted): number | null {
  if (status !== 200) return null;
  const { result } = JSON.parse(body) as { readonly result?: unknown };
  return typeof result === "string" ? Number(result) : null;
}

/** Replays the request without its upgrade headers. */
function handBack(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = rawHeaders.slice(at, at + 2);
    if (!/^(?:upgrade|connection|http2-settings)$/i.test(name)) lines.push(`${name}: ${value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}

function problem({ code, status, message }: FencepostError): Posted {
  return { status, body: JSON.stringify(problemDocument(code, message)) };
}

function unavailable(detail: string): Posted {
  return problem(new FencepostError("UNAVAILABLE", detail));
}

const NOT_INSTALLED = unavailable("WebSockets need the package ws beside this one: npm install ws@8");

function refuse(socket: Duplex, { status, body }: Posted): void {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "content-type: application/problem+json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  // Destroyed, because a refused client that does not close would keep the connection half open.
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
