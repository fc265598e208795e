/** A JSON-RPC endpoint in front of the chain, which can fail and lie. It notes the bytes that a node sends through it. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import type { Hex } from "../../../domain/lane.ts";
import type { Clock } from "../../../ports/clock.ts";
import { LOOPBACK, portOf } from "../embedded/loopback-port.ts";

export interface RpcCall {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

export type RpcAnswer = { readonly result: unknown } | { readonly error: { code: number; message: string } };

/** Bytes of a transaction that arrived, and when. */
export interface Arrival {
  readonly atMs: number;
  readonly node: string;
  readonly raw: Hex;
}

/** Misbehaviour of an endpoint: delays, failures and false results. */
export interface Misconduct {
  /** Breaks the connection; after the chain has performed the calls, or before. */
  readonly breaks?: "before" | "after";
  /** Answers every request with this HTTP status. */
  readonly status?: number;
  readonly delayMs?: number;
  /** Answers without asking the chain; undefined: asks it. */
  readonly instead?: (call: RpcCall) => RpcAnswer | undefined;
  /** Changes the chain's result. */
  readonly lie?: (call: RpcCall, result: unknown) => unknown;
}

type Ask = (method: string, params: readonly unknown[]) => Promise<RpcAnswer>;

export type Endpoint = Awaited<ReturnType<typeof openEndpoint>>;

export async function openEndpoint(
  clock: Clock,
  node: string,
  { ask, arrived }: { readonly ask: Ask; readonly arrived: (arrival: Arrival) => void },
) {
  let misconduct: Misconduct = {};

  const answer = async (call: RpcCall): Promise<RpcAnswer> => {
    const { instead, lie } = misconduct;
    const made = instead?.(call);
    if (made !== undefined) return made;
    const honest = await ask(call.method, call.params);
    return lie === undefined || "error" in honest ? honest : { result: lie(call, honest.result) };
  };

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = (await json(request)) as RpcCall | readonly RpcCall[];
    const calls = [body].flat() as readonly RpcCall[];
    for (const { method, params } of calls) {
      if (method === "eth_sendRawTransaction")
        arrived({ atMs: clock.monotonicMs(), node, raw: String(params?.[0]) as Hex });
    }
    const { breaks, status, delayMs = 0 } = misconduct;
    if (delayMs > 0) await clock.sleep(delayMs);
    if (breaks === "before") return void request.socket.destroy();
    if (status !== undefined) return void response.writeHead(status).end("the gateway is away");
    const answers: unknown[] = [];
    for (const call of calls)
      answers.push({ jsonrpc: "2.0", id: call.id, ...(await answer({ ...call, params: call.params ?? [] })) });
    if (breaks === "after") return void request.socket.destroy();
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]));
  };

  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  await once(server.listen(0, LOOPBACK), "listening");
  return {
    url: `http://${LOOPBACK}:${portOf(server)}`,
    behave: (next: Misconduct) => {
      misconduct = next;
    },
    close: async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}
