export { BadAnswer, isBytes, isRecord, memberReader, read } from "../threads/read.js";

export type Fields = Readonly<Record<string, unknown>>;

/** Reason why a call got no decisive response. The call may or may not have taken effect (invariant I7). */
export type UnreachableKind = "timeout" | "connection" | "http" | "rateLimited" | "malformed" | "tooLarge" | "closed";

export class RpcUnreachable extends Error {
  readonly kind: UnreachableKind;
  /**
   * How long to send nothing to the endpoint: the time that it named, or a default after a rate limit. Null if neither
   * applies.
   */
  readonly retryAfterMs: number | null;

  override readonly name = "RpcUnreachable";

  constructor(kind: UnreachableKind, message: string, options: ErrorOptions & { retryAfterMs?: number | null } = {}) {
    super(message, options);
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

/** The node answered this call with a JSON-RPC error object. `message` is the node's text. */
export class RpcErrorAnswer extends Error {
  override readonly name = "RpcErrorAnswer";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/**
 * Error of a call that was not sent: when a connected socket became free, the call was no longer permitted. It had no
 * effect.
 */
export class RpcNotStarted extends Error {
  override readonly name = "RpcNotStarted";
  override readonly message = "nothing was sent: sending was stopped first";
}

/** Result of one JSON-RPC call. */
export type RpcReply =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcErrorAnswer | RpcUnreachable | RpcNotStarted };

/** Returns the result of a reply; undefined if `saysNone` matches its error. Throws any other error. */
export function resultOf(reply: RpcReply | undefined, saysNone?: (error: unknown) => boolean): unknown {
  if (reply === undefined) throw new RpcUnreachable("malformed", "the endpoint left a call unanswered");
  if (reply.ok) return reply.result;
  if (saysNone?.(reply.error) === true) return undefined;
  throw reply.error;
}

/** Makes a test for a node's error that has one of these codes or a matching text. */
export function saying(codes: readonly number[], words?: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof RpcErrorAnswer && (codes.includes(error.code) || words?.test(error.message) === true);
}

/**
 * Recognizes that the node does not have the method: -32601 (JSON-RPC), -32004 (EIP-1474, EDR), -32604 (Besu with the
 * API group disabled).
 */
export const saysMethodUnsupported = saying(
  [-32601, -32604, -32004],
  /method.*(not (found|supported|available|allowed|enabled)|does not exist|unsupported)/i,
);

/**
 * True if the node will never return the requested data, or the response exceeds the size limit here. A rate limit does
 * not count, because it ends.
 */
export function withholds(error: unknown): boolean {
  if (error instanceof RpcUnreachable) return error.kind === "tooLarge";
  return error instanceof RpcErrorAnswer && !saysOverLimit(error);
}

/**
 * Recognizes a refusal by the provider, not by the node: Infura's -32005, Alchemy's 429 inside HTTP 200, an expired
 * key.
 */
export const saysOverLimit = saying(
  [429],
  /rate.?limit|too many requests|request (count|limit)|capacity|quota|compute units|unauthori[sz]ed/i,
);
