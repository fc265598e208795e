import type { FastifyRequest } from "fastify";
import { type ErrorCode, FencepostError } from "../../../domain/errors.ts";
import type { PassedAnswer } from "../../../ports/chain.ts";
import { within } from "../../../ports/clock.ts";
import type { JsonRpcOptions, RouteContext } from "../exchange/options.ts";
import type { RpcItem, RpcOutcome } from "./packet.ts";

/** The chain's response and its serialised form, shared by all callers. */
export interface ChainAnswer {
  readonly answer: PassedAnswer;
  readonly outcome: RpcOutcome;
}

type Caller = Readonly<Pick<FastifyRequest, "api" | "principal">>;

/** Context of the calls in one JSON-RPC packet (a call or a batch): caller, chain and limits. */
export interface RpcContext
  extends Caller,
    Pick<RouteContext, "clock" | "mask" | "checksum">,
    Required<JsonRpcOptions> {
  readonly chainId: number;
  /** True if this node has endpoints of the requested chain. */
  readonly servesChain: boolean;
  /** Reads from the chain. They are queued together with all callers' reads on this node. */
  readonly readChain: (context: RpcContext, method: string, params: unknown) => Promise<ChainAnswer>;
  /** Size of the received JSON-RPC request in bytes. */
  readonly bytes: number;
  /**
   * Request id from a header, for the sends of the JSON-RPC request. In a batch, each send's index in the batch is
   * appended.
   */
  readonly requestId: string | null;
  /** True if the nonce of transaction objects is ignored. */
  readonly ignoresNonce: boolean;
  /** True if call data to an address without code is accepted, for clients that cannot set allowNoCode. */
  readonly allowsNoCode: boolean;
  /** True if equal sends without a request id, less than a minute apart, are merged. */
  readonly mergesRepeats: boolean;
  /** Monotonic time by which every call of the batch must be answered. */
  readonly deadlineMs: number;
  /** Aborted when the caller disconnects or the node drains. */
  readonly signal: AbortSignal;
  /** Records for the audit that a call was refused. */
  readonly onRefused: (error: FencepostError) => void;
  /** Serialises a transaction by the API's schema. */
  readonly writeTransaction: (view: object) => string;
}

/**
 * Request id of a call from the packet's header; in a batch, the call's place is appended. Null if the header has none.
 */
export function requestIdOf({ requestId }: Pick<RpcContext, "requestId">, { index }: RpcItem): string | null {
  return requestId === null || index === null ? requestId : `${requestId}:${index}`;
}

export function leftMs({ clock, deadlineMs }: Pick<RpcContext, "clock" | "deadlineMs">): number {
  return deadlineMs - clock.monotonicMs();
}

/** Returns the result of the work, or the result of `late` if the time for answering the batch is over. */
export function inTime<T>(context: RpcContext, work: Promise<T>, late: () => T): Promise<T> {
  return within(context.clock, work, { ms: Math.max(0, leftMs(context)), late });
}

/** Returns the result of the work, or null if it failed with one of these error codes. */
export async function orNull<T>(work: Promise<T>, ...codes: readonly ErrorCode[]): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof FencepostError && codes.includes(error.code)) return null;
    throw error;
  }
}
