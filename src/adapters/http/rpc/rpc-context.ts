import type { FencepostApi } from "../../../application/operations/calls.ts";
import type { FencepostError } from "../../../domain/errors.ts";
import { forbidden, type Principal, type Scope } from "../../../domain/keys/principal.ts";
import type { Checksum } from "../../../domain/text/checksum.ts";
import type { Mask } from "../../../domain/text/mask.ts";
import type { PassedAnswer } from "../../../ports/chain.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { ForeignRaw } from "../exchange/options.ts";
import type { RpcOutcome } from "./packet.ts";

/** The chain's answer and its serialised form, shared by all callers. */
export interface ChainAnswer {
  readonly answer: PassedAnswer;
  readonly outcome: RpcOutcome;
}

/** Context of a packet's calls: its caller, its chain, and its limits. */
export interface RpcContext {
  readonly api: FencepostApi;
  readonly principal: Principal;
  readonly chainId: number;
  /** True if this node has endpoints of that chain. */
  readonly servesChain: boolean;
  /** Reads of all packets on this node. */
  readonly chainReads: { ask(context: RpcContext, method: string, params: unknown): Promise<ChainAnswer> };
  /** Size of the received packet. */
  readonly bytes: number;
  readonly clock: Clock;
  readonly mask: Mask;
  readonly checksum: Checksum;
  readonly foreignRaw: ForeignRaw;
  /** Additional read methods to forward. */
  readonly methods: readonly string[];
  /** Limit of blocks in one filter of logs. */
  readonly logsRange: number;
  /** Request id of a header, for the packet's sends; several sends get an index. */
  readonly requestId: string | null;
  readonly ignoresNonce: boolean;
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

/** Throws FORBIDDEN unless the key has one of these scopes. */
export function requireScope({ scopes }: Principal, ...enough: readonly [Scope, ...Scope[]]): void {
  if (enough.some((scope) => scopes.has(scope))) return;
  throw forbidden(`scope:${enough[0]}`, `this API key does not have the scope ${enough.join(" or ")}`);
}
