import type { FencepostApi } from "../../../application/api.ts";
import type { Checksum } from "../../../domain/checksum.ts";
import type { FencepostError } from "../../../domain/errors.ts";
import type { Mask } from "../../../domain/mask.ts";
import { forbidden, type Principal, type Scope } from "../../../domain/principal.ts";
import type { PassedAnswer } from "../../../ports/chain.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { RpcOutcome } from "./packet.ts";

/** What is to become of transactions that strangers signed. */
export type ForeignRaw = "pass" | "refuse";

/** What the chain said, and how that is told: written once for all who share it. */
export interface ChainAnswer {
  readonly answer: PassedAnswer;
  readonly outcome: RpcOutcome;
}

/** A packet and who asks: what its calls are answered with. */
export interface Asking {
  readonly api: FencepostApi;
  readonly principal: Principal;
  readonly chainId: number;
  /** Whether this node has endpoints of that chain. */
  readonly servesChain: boolean;
  /** To the chains: of all packets on this node. */
  readonly questions: { ask(asking: Asking, method: string, params: unknown): Promise<ChainAnswer> };
  /** Of the packet, as it arrived. */
  readonly bytes: number;
  readonly clock: Clock;
  readonly mask: Mask;
  readonly checksum: Checksum;
  readonly foreignRaw: ForeignRaw;
  /** Reads that are passed on beside the usual ones. */
  readonly methods: readonly string[];
  /** Blocks that one filter of logs may reach over. */
  readonly logsRange: number;
  /** Of a header: names the packet's sends, with their places where there are several. */
  readonly requestId: string | null;
  readonly ignoresNonce: boolean;
  readonly allowsNoCode: boolean;
  /** Sends without a name of their own that are alike, a moment apart, are one. */
  readonly mergesRepeats: boolean;
  /** Monotonic: by then every call is answered, one way or another. */
  readonly deadlineMs: number;
  /** Aborted when nobody waits for the answer any more, or the node leaves. */
  readonly signal: AbortSignal;
  /** Of what a key was not allowed. */
  readonly onRefused: (error: FencepostError) => void;
  /** A transaction as the API shows it, and nothing that its schema does not name. */
  readonly writeTransaction: (view: object) => string;
}

export function leftMs({ clock, deadlineMs }: Pick<Asking, "clock" | "deadlineMs">): number {
  return deadlineMs - clock.monotonicMs();
}

/** Throws FORBIDDEN unless the key has one of these scopes. */
export function requireScope({ scopes }: Principal, ...enough: readonly [Scope, ...Scope[]]): void {
  if (enough.some((scope) => scopes.has(scope))) return;
  throw forbidden(`scope:${enough[0]}`, `this API key does not have the scope ${enough.join(" or ")}`);
}
