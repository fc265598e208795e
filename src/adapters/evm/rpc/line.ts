import { Departures, Flow } from "../../../domain/departures.ts";
import { RpcNotStarted, type RpcReply, RpcUnreachable } from "./rpc-errors.ts";
import type { WireCall } from "./wire.ts";

/** Size of the burst that may leave at once after a rest, however slow the pace. */
const REQUESTS_IN_RESERVE = 8;

/** Calls that must travel in one request; queued whole, packed whole. */
export interface Group {
  readonly calls: readonly WireCall[];
  readonly bytes: number;
  readonly settle: (replies: readonly RpcReply[]) => void;
}

/** Requests of one kind: what waits for one, how many are under way, and when the next may leave. */
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
 * One part after the other. Once one has got no answer, the others are not asked for, and share its fate, unless a stop would
 * have kept them from leaving.
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
