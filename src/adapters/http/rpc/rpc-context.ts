import type { FastifyRequest } from "fastify";
import { type ErrorCode, FencepostError } from "../../../domain/errors.ts";
import type { PassedAnswer } from "../../../ports/chain.ts";
import { within } from "../../../ports/clock.ts";
import type { JsonRpcOptions, RouteContext } from "../exchange/options.ts";
import type { RpcOutcome } from "./packet.ts";

/** The chain's answer and its serialised form, shared by all callers. */
export interface ChainAnswer {
  readonly answer: PassedAnswer;
  readonly outcome: RpcOutcome;
}

type Caller = Readonly<Pick<FastifyRequest, "api" | "principal">>;

/** Context of a packet's calls: its caller, its chain, and its limits. */
export interface RpcContext
  extends Caller,
    Pick<RouteContext, "clock" | "mask" | "checksum">,
    Required<JsonRpcOptions> {
  readonly chainId: number;
  /** True if this node has endpoints of that chain. */
  readonly servesChain: boolean;
  /** Reads the chain, in turn with all packets on this node. */
  readonly readChain: (context: RpcContext, method: string, params: unknown) => Promise<ChainAnswer>;
  /** Size of the received packet. */
  readonly bytes: number;
  /** Request id of a header, for the packet's sends; several sends get an index. */
  readonly requestId: string | null;
  /** Ignores the nonce of transaction objects. */
  readonly ignoresNonce: boolean;
  /** Accepts call data to an address without code, for clients that cannot set allowNoCode. */
  readonly allowsNoCode: boolean;
  /** Merges equal sends without a request id that are less than a minute apart. */
  readonly mergesRepeats: boolean;
  /** Monotonic time by which every call is answered. */
  readonly deadlineMs: number;
  /** Aborted when the caller disconnects, or the node drains. */
  readonly signal: AbortSignal;
  /** Records a refusal for the audit. */
  readonly onRefused: (error: FencepostError) => void;
  /** Serialises a transaction by the API's schema. */
  readonly writeTransaction: (view: object) => string;
}

export function leftMs({ clock, deadlineMs }: Pick<RpcContext, "clock" | "deadlineMs">): number {
  return deadlineMs - clock.monotonicMs();
}

/** Result of the work, or of `late` when the packet's time is over. */
export function inTime<T>(context: RpcContext, work: Promise<T>, late: () => T): Promise<T> {
  return within(context.clock, work, { ms: Math.max(0, leftMs(context)), late });
}

/** Result of the work, or null if it was refused with one of these codes. */
export async function orNull<T>(work: Promise<T>, ...codes: readonly ErrorCode[]): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof FencepostError && codes.includes(error.code)) return null;
    throw error;
  }
}
