/** Why a call has no decisive answer. The effect of the call may or may not have happened (I7). */
export type UnreachableKind = "timeout" | "connection" | "http" | "rateLimited" | "malformed" | "tooLarge" | "closed";

export class RpcUnreachable extends Error {
  readonly kind: UnreachableKind;
  /** Only where the endpoint itself said when to come back. */
  readonly retryAfterMs: number | null;

  constructor(kind: UnreachableKind, message: string, options: ErrorOptions & { retryAfterMs?: number | null } = {}) {
    super(message, options);
    this.name = "RpcUnreachable";
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

/** The node answered this very call, with a JSON-RPC error object. `message` is the node's own text. */
export class RpcErrorAnswer extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = "RpcErrorAnswer";
    this.code = code;
    this.data = data;
  }
}

/** The call was not permitted to leave any more when a connected socket was free for it: it had no effect. */
export class RpcNotStarted extends Error {
  constructor() {
    super("nothing was sent: a stop came first");
    this.name = "RpcNotStarted";
  }
}

/** What became of one call. */
export type RpcReply =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcErrorAnswer | RpcUnreachable | RpcNotStarted };

/** The result of a reply; undefined where it is an error that says that there is none. Throws any other. */
export function resultOf(reply: RpcReply | undefined, saysNone?: (error: unknown) => boolean): unknown {
  if (reply === undefined) throw new RpcUnreachable("malformed", "a call was left unanswered");
  if (reply.ok) return reply.result;
  if (saysNone?.(reply.error) === true) return undefined;
  throw reply.error;
}

/** Whether an error is a node's answer with one of these codes, or in words like these. */
export function saying(codes: readonly number[], words?: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof RpcErrorAnswer && (codes.includes(error.code) || words?.test(error.message) === true);
}

/** The node has no such method: -32601 by the book, -32004 by EIP-1474 (EDR), -32604 by Besu where a group is switched off. */
export const saysMethodUnsupported = saying(
  [-32601, -32604, -32004],
  /method.*(not (found|supported|available|allowed|enabled)|does not exist|unsupported)/i,
);

/** What is more than a node gives, or than is taken here, will be so for ever; one that is over its limit answers later. */
export function withholds(error: unknown): boolean {
  if (error instanceof RpcUnreachable) return error.kind === "tooLarge";
  return error instanceof RpcErrorAnswer && !saysOverLimit(error);
}

/** The provider, not the node, speaks: Infura's -32005, Alchemy's 429 inside a 200, an expired key. */
export const saysOverLimit = saying(
  [429],
  /rate.?limit|too many requests|request (count|limit)|capacity|quota|compute units|unauthori[sz]ed/i,
);
