import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { SimulatedChain } from "./core.ts";
import { type Fault, Faults } from "./faults.ts";
import { createRpc, type Params, RpcError } from "./rpc.ts";
import type { Json } from "./rpc-format.ts";
import { ChainView } from "./view.ts";

export interface SimulatedServerOptions {
  readonly chain: SimulatedChain;
  readonly port?: number;
  readonly faults?: Faults;
  /** Interval in ms at which the server mines by itself; if absent, blocks are mined only by `chain.mine()`. */
  readonly blockTimeMs?: number;
  readonly blockReceipts?: boolean;
}

export interface SimulatedServer {
  readonly url: string;
  readonly chain: SimulatedChain;
  readonly faults: Faults;
  /** Numbers of HTTP requests and of calls so far, for tests that count the cost of a transaction. */
  readonly requests: () => number;
  readonly calls: (method: string) => number;
  close(): Promise<void>;
}

/**
 * One endpoint: a simulated chain behind JSON-RPC over HTTP. Several endpoints may share a chain, each with its own
 * faults.
 */
export async function startSimulatedServer(options: SimulatedServerOptions): Promise<SimulatedServer> {
  const { chain, faults = new Faults(), blockReceipts = true } = options;
  const endpoint = new Endpoint(createRpc({ chain, view: new ChainView(chain, faults), blockReceipts }), faults);
  const server = createServer((request, response) => void endpoint.handle(request, response));
  // Disable keep-alive: a connection that the server closes at the wrong moment would look like a fault that no test
  // injected.
  server.keepAliveTimeout = 0;
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const mining = options.blockTimeMs === undefined ? null : setInterval(() => chain.mine(), options.blockTimeMs);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    chain,
    faults,
    requests: () => endpoint.requests,
    calls: (method) => endpoint.calls.get(method) ?? 0,
    async close() {
      if (mining !== null) clearInterval(mining);
      await closeServer(server);
    },
  };
}

async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

interface Call {
  readonly id: Json;
  readonly method: string;
  readonly params: Params;
  readonly fault: Fault | null;
}

class Endpoint {
  readonly calls = new Map<string, number>();
  requests = 0;
  readonly #rpc: ReturnType<typeof createRpc>;
  readonly #faults: Faults;

  constructor(rpc: ReturnType<typeof createRpc>, faults: Faults) {
    this.#rpc = rpc;
    this.#faults = faults;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    if (body === null) return;
    this.requests++;
    const parsed = parseJson(body);
    if (parsed === undefined)
      return respond(response, { jsonrpc: "2.0", id: null, error: { code: -32700, message: "parse error" } });
    const calls = (Array.isArray(parsed) ? parsed : [parsed]).map((call) => this.#receive(call));
    const faults = calls.map((call) => call.fault).filter((fault) => fault !== null);
    if (intercept(faults, response)) return;
    const answers = calls.map((call) => this.#answer(call));
    if (faults.some((fault) => fault.kind === "loseReply")) return void response.socket?.destroy();
    if (faults.some((fault) => fault.kind === "hang")) return;
    respond(response, Array.isArray(parsed) ? answers : (answers[0] ?? null));
  }

  #receive(value: unknown): Call {
    const { id = null, method = "", params } = (value ?? {}) as { id?: Json; method?: unknown; params?: unknown };
    const name = String(method);
    const list = Array.isArray(params) ? params : [];
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    return { id, method: name, params: list, fault: this.#faults.strike(name, list) };
  }

  #answer({ id, method, params, fault }: Call): Json {
    try {
      if (fault?.kind === "error") throw new RpcError(fault.code, fault.message);
      return { jsonrpc: "2.0", id, result: this.#rpc(method, params) };
    } catch (error) {
      return { jsonrpc: "2.0", id, error: fault?.kind === "wrapErrors" ? wrapped(error) : plain(error) };
    }
  }
}

/**
 * Applies faults that occur before the node receives the request; they affect the whole batch. Returns true if such a
 * fault replaces the regular response.
 */
function intercept(faults: readonly Fault[], response: ServerResponse): boolean {
  for (const fault of faults) {
    if (fault.kind === "unavailable") response.socket?.destroy();
    else if (fault.kind === "httpError") respondHtml(response, fault);
    else if (fault.kind !== "hang" || fault.executed === true) continue;
    return true;
  }
  return false;
}

async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    return null; // There is no request text, because the client disconnected in the middle of its request.
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function respond(response: ServerResponse, answer: Json): void {
  const body = JSON.stringify(answer);
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  response.end(body);
}

function respondHtml(response: ServerResponse, fault: Extract<Fault, { readonly kind: "httpError" }>): void {
  const { status, retryAfterSeconds } = fault;
  const retryAfter = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  response.writeHead(status, { "content-type": "text/html", ...retryAfter });
  response.end(`<html><head><title>${status}</title></head><body><center><h1>${status}</h1></center></body></html>`);
}

function plain(error: unknown): Json {
  if (!(error instanceof RpcError))
    return { code: -32603, message: error instanceof Error ? error.message : "internal error" };
  return { code: error.code, message: error.message, ...(error.data === undefined ? {} : { data: error.data }) };
}

/** Returns a node's error in the form in which some gateways pass it on. */
function wrapped(error: unknown): Json {
  return { code: -32603, message: "Internal JSON-RPC error.", data: plain(error) };
}
