import type { Address, Hash, Hex } from "../../../domain/lane.ts";

/** Reason why a call has no decisive answer. The call may or may not have taken effect (invariant I7). */
export type UnreachableKind = "timeout" | "connection" | "http" | "rateLimited" | "malformed" | "tooLarge" | "closed";

export class RpcUnreachable extends Error {
  readonly kind: UnreachableKind;
  /** Set only if the endpoint itself named a time. */
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

/** The call was no longer permitted to leave when a connected socket was free. It had no effect. */
export class RpcNotStarted extends Error {
  override readonly name = "RpcNotStarted";
  override readonly message = "nothing was sent: sending was stopped first";
}

/** Result of one call. */
export type RpcReply =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcErrorAnswer | RpcUnreachable | RpcNotStarted };

/** The result of a reply; undefined if `saysNone` matches its error. Throws any other error. */
export function resultOf(reply: RpcReply | undefined, saysNone?: (error: unknown) => boolean): unknown {
  if (reply === undefined) throw new RpcUnreachable("malformed", "the endpoint left a call unanswered");
  if (reply.ok) return reply.result;
  if (saysNone?.(reply.error) === true) return undefined;
  throw reply.error;
}

/** A test for a node's error with one of these codes, or with a matching text. */
export function saying(codes: readonly number[], words?: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof RpcErrorAnswer && (codes.includes(error.code) || words?.test(error.message) === true);
}

/**
 * The node does not have the method: -32601 (JSON-RPC), -32004 (EIP-1474, EDR), -32604 (Besu with the API group
 * disabled).
 */
export const saysMethodUnsupported = saying(
  [-32601, -32604, -32004],
  /method.*(not (found|supported|available|allowed|enabled)|does not exist|unsupported)/i,
);

/** The node will never give this answer, or it is larger than the limit here. A rate limit does not count: it ends. */
export function withholds(error: unknown): boolean {
  if (error instanceof RpcUnreachable) return error.kind === "tooLarge";
  return error instanceof RpcErrorAnswer && !saysOverLimit(error);
}

/** A provider's refusal, not the node's: Infura's -32005, Alchemy's 429 inside HTTP 200, an expired key. */
export const saysOverLimit = saying(
  [429],
  /rate.?limit|too many requests|request (count|limit)|capacity|quota|compute units|unauthori[sz]ed/i,
);

/** An endpoint's answer is malformed or contradictory. It is treated like no answer: never as NaN or a guess. */
export class BadAnswer extends Error {
  override readonly name = "BadAnswer";
}

const QUANTITY = /^0x[0-9a-fA-F]{1,64}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const BYTES = /^0x(?:[0-9a-fA-F]{2})*$/;

const MOST_GAS = 2n ** 63n - 1n;

export type Fields = Readonly<Record<string, unknown>>;

/** Readers for values of a node's answer. `what` names the value in the error message. */
export const read = {
  bigint: (value: unknown, what: string): bigint => {
    if (typeof value !== "string" || !QUANTITY.test(value)) throw new BadAnswer(`${what} is not a quantity`);
    return BigInt(value);
  },
  number: (value: unknown, what: string): number => {
    const number = Number(read.bigint(value, what));
    if (!Number.isSafeInteger(number)) throw new BadAnswer(`${what} is out of range`);
    return number;
  },
  /** geth counts gas in 64 bits, and the database column holds 63. */
  gas: (value: unknown, what: string): bigint => {
    const gas = read.bigint(value, what);
    if (gas > MOST_GAS) throw new BadAnswer(`${what} is out of range`);
    return gas;
  },
  hash: (value: unknown, what: string): Hash => readHex(value, HASH, what),
  address: (value: unknown, what: string): Address => readHex(value, ADDRESS, what),
  bytes: (value: unknown, what: string): Hex => readHex(value, BYTES, what),
  record: (value: unknown, what: string): Fields => {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
    throw new BadAnswer(`${what} is no object`);
  },
  array: (value: unknown, what: string): readonly unknown[] => {
    if (!Array.isArray(value)) throw new BadAnswer(`${what} is no list`);
    return value;
  },
  /** Null if the value is absent. */
  optional:
    <T>(as: Reader<T>): Reader<T | null> =>
    (value, what) =>
      value === null || value === undefined ? null : as(value, what),
};

type Reader<T> = (value: unknown, what: string) => T;

/** Reads members of one object of an answer; errors name the object and the member. */
export function memberReader(fields: Fields, what: string) {
  return <T>(as: Reader<T>, name: string): T => as(fields[name], `${what}.${name}`);
}

export const isBytes = (value: unknown): value is Hex => typeof value === "string" && BYTES.test(value);

function readHex(value: unknown, pattern: RegExp, what: string): Hex {
  if (typeof value !== "string" || !pattern.test(value)) throw new BadAnswer(`${what} is not well-formed`);
  return value.toLowerCase() as Hex;
}
