import type { MayLeave } from "../../../ports/chain.ts";
import { type Fields, isRecord, RpcErrorAnswer, RpcNotStarted, type RpcReply, RpcUnreachable } from "./rpc-errors.ts";

export interface RpcCall {
  readonly method: string;
  readonly params: unknown;
  /**
   * Called when a connected socket is free; false if the call must not be sent any more. If absent, the call may always
   * be sent.
   */
  readonly mayLeave?: MayLeave;
}

/** An encoded call. Its JSON is built once, so that its size is known before a request is assembled. */
export interface WireCall {
  readonly id: number;
  readonly method: string;
  readonly json: string;
  /** True if the call must not be answered before the calls that precede it. */
  readonly inOrder: boolean;
  readonly mayLeave: MayLeave;
}

const ALWAYS: MayLeave = () => true;

export function encodeCall(id: number, { method, params, mayLeave = ALWAYS }: RpcCall, inOrder: boolean): WireCall {
  return { id, method, json: JSON.stringify({ jsonrpc: "2.0", id, method, params }), inOrder, mayLeave };
}

/** Encodes the body of a request. A single call is not wrapped in a batch. */
export function encodeBody(calls: readonly WireCall[]): string {
  const texts = calls.map((call) => call.json);
  return texts.length === 1 ? texts.join() : `[${texts.join(",")}]`;
}

/** Some calls of a request are no longer permitted to be sent. Nothing of the request was written. */
export class Stopped extends Error {
  readonly calls: ReadonlySet<WireCall>;

  constructor(calls: ReadonlySet<WireCall>) {
    super("calls of this request may not leave any more");
    this.calls = calls;
  }
}

/** Checks for every call whether it may still be sent. Throws `Stopped` if one may not. */
export function refuseStopped(calls: readonly WireCall[]): void {
  const stopped = new Set(calls.filter((call) => !call.mayLeave()));
  if (stopped.size > 0) throw new Stopped(stopped);
}

/** Parses the body of a response; undefined if it is not JSON. */
export function parseBody(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/**
 * Reads the reply to a call that was sent alone. An error without an id belongs to this call, because there was no
 * other.
 */
export function readSingle(value: unknown, call: WireCall, label: string): RpcReply {
  if (value === undefined) {
    return { ok: false, error: new RpcUnreachable("malformed", `${label} answered with something that is not JSON`) };
  }
  const isOurs = isRecord(value) && (hasId(value, call.id) || (value.id === null && value.error !== undefined));
  return isOurs ? readMember(value, call, label) : malformed(label, call);
}

/** Reason why an endpoint refused a batch as a whole. */
export type BatchRefusal = "tooLarge" | "unsupported" | "rateLimited";

/**
 * Returns the replies in the order of `calls`, because a server may answer in another order. A missing reply counts as
 * malformed.
 */
export function readBatch(value: unknown, calls: readonly WireCall[], label: string) {
  if (!Array.isArray(value)) return refusalOf(value) ?? calls.map((call) => malformed(label, call));
  const byId = new Map<string, Fields | "ambiguous">();
  for (const member of value) {
    if (!isRecord(member)) continue;
    const id = String(member.id);
    byId.set(id, byId.has(id) ? "ambiguous" : member);
  }
  return calls.map((call) => {
    const member = byId.get(String(call.id));
    return member === undefined || member === "ambiguous" ? malformed(label, call) : readMember(member, call, label);
  });
}

/**
 * Recognizes a refused batch. geth: -32600 "batch too large"; Besu: -32005 "Number of requests exceeds max batch size";
 * public gateways: "batch requests are not supported". A rate limit is a separate result, even if its text contains
 * "requests": sending the calls one by one would make it worse.
 */
function refusalOf(value: unknown): BatchRefusal | null {
  if (!isRecord(value) || !isRecord(value.error)) return null;
  const text = wordsOf(value.error);
  if (/batch/i.test(text)) return /large|many|size|max|limit|exceed/i.test(text) ? "tooLarge" : "unsupported";
  const { code } = value.error;
  if (code === 429 || RATE_TEXT.test(text)) return "rateLimited";
  return code === -32600 || code === -32700 ? "unsupported" : null;
}

const RATE_TEXT = /rate.?limit|too many requests|limit.*exceeded|exceeded.*(limit|capacity|quota)|compute units/i;

function readMember(member: Fields, call: WireCall, label: string): RpcReply {
  if (isRecord(member.error)) {
    const { code, data } = member.error;
    return { ok: false, error: new RpcErrorAnswer(typeof code === "number" ? code : 0, wordsOf(member.error), data) };
  }
  const hasNoError = member.error === undefined || member.error === null;
  if (hasNoError && "result" in member) return { ok: true, result: member.result };
  return malformed(label, call);
}

const LONGEST_WORDS = 4_000;

/**
 * Shortens an error text before it is matched: the patterns match near the beginning, and matching takes quadratic
 * time.
 */
const wordsOf = ({ message }: Fields) => (typeof message === "string" ? message.slice(0, LONGEST_WORDS) : "");

/** True if the reply has this id. Some gateways return the id as a string, so only the digits are compared. */
function hasId(value: Fields, id: number) {
  return (typeof value.id === "number" || typeof value.id === "string") && String(value.id) === String(id);
}

function malformed(label: string, call: WireCall): RpcReply {
  return { ok: false, error: new RpcUnreachable("malformed", `${label} gave no usable answer to ${call.method}`) };
}

export const NOT_STARTED: RpcReply = { ok: false, error: new RpcNotStarted() };

/**
 * Sends the parts one after another. If a part gets no response, the later parts are not sent. Their calls get the same
 * error; a call that may no longer be sent is reported as not started instead.
 */
export async function inOrder(
  parts: readonly (readonly WireCall[])[],
  ask: (part: readonly WireCall[]) => Promise<readonly RpcReply[]>,
): Promise<readonly RpcReply[]> {
  const replies: RpcReply[] = [];
  for (const part of parts) {
    const last = replies.findLast((reply) => reply.ok || !(reply.error instanceof RpcNotStarted));
    const isOver = last?.ok === false && last.error instanceof RpcUnreachable;
    replies.push(...(isOver ? part.map((call) => (call.mayLeave() ? last : NOT_STARTED)) : await ask(part)));
  }
  return replies;
}
