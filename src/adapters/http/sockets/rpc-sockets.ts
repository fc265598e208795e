/**
 * Who may open a WebSocket at `/rpc`: whoever may `POST` there. The first call is made in the caller's name, with its own
 * Host, Origin and key, before anything is opened; a page of another site, which a browser lets open sockets to any
 * address, is refused by that.
 */
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import { problemDocument } from "../../../contract/problem.ts";
import { FencepostError } from "../../../domain/errors.ts";
import type { Authenticate } from "../auth.ts";
import { BACKLOG_BYTES, HeldBytes } from "../held-bytes.ts";
import { refuseTwoHosts } from "../host-and-origin.ts";
import type { HttpServerOptions } from "../options.ts";
import { HeadAnnouncer, type HeadListener } from "../rpc/head-announcer.ts";
import { type Posted, RpcSocket, STILL_ALLOWED } from "./rpc-socket.ts";
import { type LoadUpgrader, loadUpgrader, type WebSocketUpgrader } from "./ws-package.ts";

export interface RpcSocketsOptions extends Pick<HttpServerOptions, "api" | "clock"> {
  readonly authenticate: Authenticate;
  /** Byte budget per key and node, shared with HTTP bodies. */
  readonly bytes: HeldBytes;
  readonly loadUpgrader?: LoadUpgrader;
}

/** Whatever else begins so is refused: as a URL, which `inject` makes of it, `/rpc/../api` is another route. */
const UNDER_RPC = /^\/rpc(?:[/\\?]|$)/;
const AT_RPC = /^\/rpc(?:\/[\w-]+)?(?:\/key\/(?<secret>[^/\\?#]+))?(?:\?|$)/;
const MOST_SOCKETS = 512;
const MOST_OF_ONE_KEY = 64;
/** As of a request. */
const MOST_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Of the request that opens a socket: they say in whose name everything on it is asked. */
const IN_THE_NAME_OF = ["host", "origin", "authorization"] as const;

type Caller = Readonly<Partial<Record<(typeof IN_THE_NAME_OF)[number], string>>>;

export class RpcSockets {
  private readonly app: FastifyInstance;
  private readonly options: RpcSocketsOptions;
  private readonly backlog = new HeldBytes(BACKLOG_BYTES);
  private readonly heads = new Map<number, HeadAnnouncer>();
  private readonly open = new Set<RpcSocket>();
  /** By the key's name, whichever of its secrets was shown and however. */
  private readonly byKey = new Map<string | null, number>();
  private total = 0;
  private upgrader: Promise<WebSocketUpgrader | null> | null = null;
  private isLeaving = false;

  constructor(app: FastifyInstance, options: RpcSocketsOptions) {
    this.app = app;
    this.options = options;
  }

  openOn(server: Server): void {
    server.on("upgrade", (request, socket, head) => {
      // Java's client offers HTTP/2 with its first request, whatever that is: it is answered as if it had not.
      if (!isSocketAtRpc(request)) return handBack(server, request, socket, head);
      socket.on("error", () => socket.destroy());
      this.upgrade(request, socket, head).catch((error: unknown) => {
        if (error instanceof FencepostError) refuse(socket, problem(error));
        else socket.destroy();
      });
    });
  }

  /** No more are opened; those that are open are closed when what they asked has been answered. */
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
    if (path === null) return refuse(socket, problem(new FencepostError("NOT_FOUND", "WebSockets are at /rpc alone")));
    refuseTwoHosts(rawHeaders);
    const caller = Object.fromEntries(IN_THE_NAME_OF.flatMap((name) => (headers[name] ? [[name, headers[name]]] : [])));
    const post = (text: string) => this.post(url, caller, text);
    const first = await post(STILL_ALLOWED);
    const chainId = chainIn(first);
    if (chainId === null) return refuse(socket, first.status === 200 ? { ...first, status: 400 } : first);
    // A POST in this name was answered, so it is a known key's.
    const { secret } = path.groups ?? {};
    const shown = secret === undefined ? headers.authorization : `Bearer ${decodeURIComponent(secret)}`;
    const { name: key } = this.options.authenticate(shown);
    const upgrader = await this.load();
    if (upgrader === null) return refuse(socket, NOT_INSTALLED);
    if (this.isLeaving) return refuse(socket, unavailable("this node is leaving: connect again"));
    if (this.total >= MOST_SOCKETS || this.countOf(key) >= MOST_OF_ONE_KEY) {
      return refuse(socket, unavailable("too many WebSockets are open: on this node, or of this key"));
    }
    this.count(key, 1);
    socket.once("close", () => this.count(key, -1));
    upgrader.handleUpgrade(request, socket, head, (taken) => {
      const hearHeads = (listener: HeadListener) => this.headsOf(chainId).hear(listener);
      const hold = { received: () => this.options.bytes.by(key), sent: () => this.backlog.by(key) };
      const { clock } = this.options;
      const opened = new RpcSocket(taken, { clock, post, hearHeads, hold }, () => this.open.delete(opened));
      this.open.add(opened);
      // Before `ws` has them: a message that is announced and never ends is in its memory, not in ours.
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

  private countOf(key: string | null): number {
    return this.byKey.get(key) ?? 0;
  }

  private count(key: string | null, by: number): void {
    this.total += by;
    const now = this.countOf(key) + by;
    if (now === 0) this.byKey.delete(key);
    else this.byKey.set(key, now);
  }
}

function isSocketAtRpc({ headers, method, url = "" }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket" && UNDER_RPC.test(url);
}

/** Null: it is not let in, or asks for no chain that is served here. */
function chainIn({ status, body }: Posted): number | null {
  if (status !== 200) return null;
  const { result } = JSON.parse(body) as { readonly result?: unknown };
  return typeof result === "string" ? Number(result) : null;
}

/** As a request that asks for nothing but its answer: its head is written again, and read anew. */
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
  // Whoever was refused and does not hang up would keep the connection half open.
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}
