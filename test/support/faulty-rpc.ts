import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * A fault of one HTTP request. With `swallow`, the request is executed and the response lost; with `cut`, the request
 * is lost before execution.
 */
export type Fault =
  | {
      readonly kind:
        | "hang"
        | "swallow"
        | "hangUp"
        | "cut"
        | "truncate"
        | "reorder"
        | "wrongIds"
        | "stringIds"
        | "duplicateIds";
    }
  | { readonly kind: "omit"; readonly at: number }
  | { readonly kind: "raw"; readonly body: string }
  | {
      readonly kind: "status";
      readonly status: number;
      readonly body?: string;
      readonly headers?: Record<string, string>;
    };

export interface RpcRequest {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly batch: boolean;
  readonly calls: readonly RpcRequest[];
}

/** Thrown by a handler to answer with a JSON-RPC error. */
export class Refusal extends Error {
  readonly body: { readonly code: number; readonly message: string; readonly data?: unknown };
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.body = data === undefined ? { code, message } : { code, message, data };
  }
}

type Handler = (params: readonly unknown[]) => unknown;

/** A JSON-RPC endpoint controlled by a test; it records the requests that reached it. */
export interface FaultyRpc {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  on(method: string, handler: Handler): void;
  /** Queues faults for the next requests, one each, in order of arrival. */
  failNext(...faults: readonly Fault[]): void;
  /** Sets a fault for every request; null ends it. */
  failAlways(fault: Fault | null): void;
  /** Refuses batches with this JSON body; null accepts them again. */
  refuseBatches(body: unknown, longest?: number): void;
  /** Resolves once `count` requests in total have arrived. */
  arrived(count: number): Promise<void>;
  calls(method: string): readonly RpcRequest[];
  close(): Promise<void>;
}

export async function startFaultyRpc(chainId = 31_337): Promise<FaultyRpc> {
  const handlers = new Map<string, Handler>([["eth_chainId", () => `0x${chainId.toString(16)}`]]);
  const requests: SeenRequest[] = [];
  const faults: Fault[] = [];
  const waiters: { readonly count: number; readonly resolve: () => void }[] = [];
  let standing: Fault | null = null;
  let refusal: { readonly body: unknown; readonly longest: number } | null = null;

  const server = createServer(
    (request, response) => void serve(request, response).catch((error) => response.destroy(error)),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    on: (method, handler) => void handlers.set(method, handler),
    failNext: (...next) => void faults.push(...next),
    failAlways: (fault) => {
      standing = fault;
    },
    refuseBatches: (body, longest = 1) => {
      refusal = body === null ? null : { body, longest };
    },
    arrived: (count) =>
      new Promise((resolve) => {
        waiters.push({ count, resolve });
        announce();
      }),
    calls: (method) => requests.flatMap((request) => request.calls.filter((call) => call.method === method)),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const seen = await readRequest(request);
    const fault = faults.shift() ?? standing;
    requests.push(seen);
    announce();
    if (fault?.kind === "hang") return;
    if (fault?.kind === "cut") return void request.socket.destroy();
    if (fault?.kind === "status") return reply(response, fault.body ?? "", fault.status, fault.headers);
    if (fault?.kind === "raw") return reply(response, fault.body);
    if (refusal !== null && seen.calls.length > refusal.longest) return reply(response, JSON.stringify(refusal.body));
    const answers = await Promise.all(seen.calls.map(answer));
    // The response arrives, but the connection is closed, so the next request needs another one.
    if (fault?.kind === "hangUp") response.setHeader("connection", "close");
    if (fault?.kind === "swallow") return void request.socket.destroy();
    const spoilt = spoil(answers, fault);
    const body = JSON.stringify(seen.batch ? spoilt : spoilt[0]);
    reply(response, fault?.kind === "truncate" ? body.slice(0, body.length / 2) : body);
  }

  async function answer({ id, method, params }: RpcRequest): Promise<Answer> {
    const handler = handlers.get(method);
    if (handler === undefined) return { jsonrpc: "2.0", id, error: { code: -32601, message: `no ${method} here` } };
    try {
      return { jsonrpc: "2.0", id, result: await handler(params) };
    } catch (error) {
      if (error instanceof Refusal) return { jsonrpc: "2.0", id, error: error.body };
      throw error;
    }
  }

  function announce(): void {
    for (const waiter of waiters) if (requests.length >= waiter.count) waiter.resolve();
  }
}

interface Answer {
  readonly jsonrpc: "2.0";
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

function spoil(answers: readonly Answer[], fault: Fault | null): readonly Answer[] {
  switch (fault?.kind) {
    case "reorder":
      return answers.toReversed();
    case "omit":
      return answers.toSpliced(fault.at, 1);
    case "wrongIds":
      return answers.map((each) => ({ ...each, id: Number(each.id) + 1_000_000 }));
    case "stringIds":
      return answers.map((each) => ({ ...each, id: String(each.id) }));
    case "duplicateIds":
      return [...answers, ...answers];
    default:
      return answers;
  }
}

async function readRequest(request: IncomingMessage): Promise<SeenRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  const calls = (Array.isArray(body) ? body : [body]) as readonly RpcRequest[];
  return { path: request.url ?? "", headers: request.headers, batch: Array.isArray(body), calls };
}

function reply(response: ServerResponse, body: string, status = 200, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}
