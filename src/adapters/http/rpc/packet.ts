/** JSON-RPC 2.0 encoding: reads a packet (a call or a batch), and writes the responses. */

type CallId = string | number | null;

/** One call of a JSON-RPC request, alone or in a batch. */
export interface RpcItem {
  readonly id: CallId;
  readonly method: string;
  readonly params: unknown;
  /** Index of the call in its batch; null if it was sent alone. */
  readonly index: number | null;
}

/** Response to a call: its result as JSON text, or an error. */
export type RpcOutcome = { readonly json: string } | RpcFailure;

export class RpcFailure {
  readonly code: number;
  readonly message: string;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    this.code = code;
    this.message = message;
    this.data = data;
  }
}

export type Answer = (item: RpcItem, outcome: RpcOutcome) => void;

export const HASH = /^0x[0-9a-f]{64}$/i;

/** Reads parameters given as a list. JSON-RPC also allows parameters by name, which no method here accepts. */
export function listOf(params: unknown): readonly unknown[] {
  return Array.isArray(params) ? params : [];
}

export function result(value: unknown): RpcOutcome {
  return { json: JSON.stringify(value ?? null) };
}

/**
 * Largest batch that is processed. Known clients send no larger ones: ethers sends a hundred calls, viem a thousand.
 */
const MOST_ITEMS = 1_000;

/** Largest batch that is refused call by call; larger ones are refused as a whole. */
const MOST_REFUSED = 10 * MOST_ITEMS;

export interface Packet {
  readonly isBatch: boolean;
  readonly items: readonly (RpcItem | { readonly id: CallId; readonly refused: RpcFailure })[];
}

/**
 * Reads a packet (a call or a batch). If a batch is too large, each of its calls is refused, because clients look for
 * their ids in the list of responses.
 */
export function readPacket(body: unknown): Packet {
  if (!Array.isArray(body)) return { isBatch: false, items: [readItem(body, null)] };
  if (body.length === 0) return { isBatch: false, items: [refused(null, "the batch is empty")] };
  if (body.length <= MOST_ITEMS) return { isBatch: true, items: body.map(readItem) };
  const why = `the batch holds ${body.length} calls; the limit is ${MOST_ITEMS}`;
  // Refuse a huge batch as a whole, against amplification: an empty item takes three bytes, its refusal a hundred.
  if (body.length > MOST_REFUSED) return { isBatch: false, items: [refused(null, why)] };
  return { isBatch: true, items: body.map((each: unknown) => refused(idOf(each), why)) };
}

function readItem(value: unknown, index: number | null): Packet["items"][number] {
  const id = idOf(value);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refused(null, "the call is not an object");
  const { jsonrpc, method, params } = value as Readonly<Record<string, unknown>>;
  // Refuse a notification: it gets no response, so its sender would not learn the result.
  if (!("id" in value)) return refused(null, "a call needs an id: notifications are not accepted");
  if (jsonrpc !== "2.0") return refused(id, 'jsonrpc must be "2.0"');
  if (typeof method !== "string") return refused(id, "method must be text");
  if (params !== undefined && (typeof params !== "object" || params === null))
    return refused(id, "params must be a list");
  return { id, method, params, index };
}

function refused(id: CallId, why: string) {
  return { id, refused: new RpcFailure(-32600, `invalid request: ${why}`) };
}

function idOf(value: unknown): CallId {
  const id = (value as { id?: unknown } | null | undefined)?.id;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

/** Writes the response to one call as text; its result is already serialised, because it may be large. */
export function writeAnswer(id: CallId, outcome: RpcOutcome): string {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)}`;
  if (!(outcome instanceof RpcFailure)) return `${head},"result":${outcome.json}}`;
  const { code, message, data } = outcome;
  return `${head},"error":${JSON.stringify({ code, message, ...(data === undefined ? {} : { data }) })}}`;
}
