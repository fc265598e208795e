import { Departures, Flow } from "../../../domain/pace/departures.ts";
import { RpcNotStarted, type RpcReply, RpcUnreachable } from "./rpc-errors.ts";
import type { WireCall } from "./wire.ts";

/** Requests that may leave at once after a pause, at any pace. */
const REQUESTS_IN_RESERVE = 8;

/** Calls that must be in one request. */
export interface Group {
  readonly calls: readonly WireCall[];
  readonly bytes: number;
  readonly settle: (replies: readonly RpcReply[]) => void;
}

/** Queue of one kind of requests: waiting calls, requests in flight, and the pace. */
export class Line {
  readonly waiting: Group[] = [];
  readonly flow: Flow;
  readonly pace: Departures;
  inFlight = 0;
  cancelTimer: (() => void) | null = null;

  constructor({ requestEveryMs, gatherAbove }: { readonly requestEveryMs: number; readonly gatherAbove: number }) {
    this.flow = new Flow(gatherAbove);
    this.pace = new Departures(requestEveryMs, REQUESTS_IN_RESERVE, this.flow);
  }
}

export const NOT_STARTED: RpcReply = { ok: false, error: new RpcNotStarted() };

/**
 * Sends the parts one after another. If a part gets no answer, the later parts are not sent and have the same error,
 * unless they were no longer permitted to leave.
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
