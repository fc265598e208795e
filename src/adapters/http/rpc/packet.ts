/** JSON-RPC 2.0 as it stands on the wire: what a packet holds, and how each of its items is answered. */

export type CallId = string | number | null;

/** One call of a packet. */
export interface RpcItem {
  readonly id: CallId;
  readonly method: string;
  readonly params: unknown;
  /** Its place in the packet; null: it came alone. */
  readonly index: number | null;
}

/** What a call is answered with: its result as JSON text, or an error. */
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

export function result(value: unknown): RpcOutcome {
  return { json: JSON.stringify(value ?? null) };
}

/** As many as the largest batches of clients have; ethers sends a hundred, viem a thousand. */
export const MOST_ITEMS = 1_000;

/** So many are refused one by one; a batch of more as a whole. */
const MOST_REFUSED = 10 * MOST_ITEMS;

export interface Packet {
  readonly isBatch: boolean;
  readonly items: readonly (RpcItem | { readonly id: CallId; readonly refused: RpcFailure })[];
}

/** A packet that holds too many has each of them refused: clients look for their ids in an answer that is a list. */
export function readPacket(body: unknown): Packet {
  if (!Array.isArray(body)) return { isBatch: false, items: [readItem(body, null)] };
  if (body.length === 0) return { isBatch: false, items: [refused(null, "the batch is empty")] };
  if (body.length <= MOST_ITEMS) return { isBatch: true, items: body.map(readItem) };
  const why = `the batch holds ${body.length} calls; at most ${MOST_ITEMS} are taken`;
  // An empty list in 8 MiB of them takes three bytes, and its refusal a hundred.
  if (body.length > MOST_REFUSED) return { isBatch: false, items: [refused(null, why)] };
  return { isBatch: true, items: body.map((each: unknown) => refused(idOf(each), why)) };
}

function readItem(value: unknown, index: number | null): Packet["items"][number] {
  const id = idOf(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return refused(null, "it is not an object");
  const { jsonrpc, method, params } = value as Readonly<Record<string, unknown>>;
  // A notification gets no answer, and so nobody would learn what it did.
  if (!("id" in value)) return refused(null, "a call needs an id: notifications are not taken");
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
  const id = (value as { readonly id?: unknown } | null | undefined)?.id;
  return typeof id === "string" || typeof id === "number" ? id : null;
}

/** The answer to one call. Put together as text: a result may be large, and was written once already. */
export function writeAnswer(id: CallId, outcome: RpcOutcome): string {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)}`;
  if (!(outcome instanceof RpcFailure)) return `${head},"result":${outcome.json}}`;
  const { code, message, data } = outcome;
  return `${head},"error":${JSON.stringify({ code, message, ...(data === undefined ? {} : { data }) })}}`;
}
