/** What a person sees of everything at once. No answer asks a chain anything: it tells what the loops were last told. */

import type { Address, Lane } from "../domain/lane.ts";
import type { NonceSpan } from "../domain/nonces/nonce-spans.ts";
import type { State } from "../domain/transaction/transitions.ts";
import type { Trouble } from "../domain/troubles/rows.ts";
import type { EndpointHealth } from "../ports/chain.ts";

export interface NoticesQuery {
  readonly signer?: string;
  readonly chainId?: number;
  readonly open?: boolean;
  readonly limit?: number;
}

/** Held while the answer still is of `revision`, for `waitMs` at most. */
export interface HeldQuery {
  readonly revision?: string;
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

export interface AttentionQuery extends HeldQuery {
  readonly chainId?: number;
  readonly limit?: number;
}

export interface AttentionView {
  readonly revision: string;
  readonly asOf: Date;
  readonly items: readonly Trouble[];
  readonly more: number;
  /** What was told of a moment lately and is over, newest first. */
  readonly past: readonly Trouble[];
}

export interface OverviewView {
  readonly revision: string;
  readonly asOf: Date;
  readonly lanes: number;
  readonly states: Readonly<Record<State, number>>;
  /** Over the last minutes; null: not told to whoever asks. */
  readonly createdPerMinute: number | null;
  readonly completedPerMinute: number | null;
  readonly timeToFinalitySeconds: { readonly p50: number; readonly p95: number } | null;
  readonly oldestPending: OldestPending | null;
  readonly chains: readonly ChainView[];
}

export interface OldestPending {
  readonly lane: Lane;
  readonly txId: string;
  readonly nonce: number | null;
  readonly createdAt: Date;
}

export interface ChainView {
  readonly chainId: number;
  readonly reachable: boolean;
  readonly head: number | null;
  /** When this node first saw that head, by its own clock; null: it has none. */
  readonly headSince: Date | null;
  /** What a block usually takes, as seen from here; null: not known, or they come as they like. */
  readonly blockSeconds: number | null;
  readonly stalled: boolean;
  readonly baseFee: bigint | null;
  /** What the last blocks took above it, as a loop was last told; null: none has asked. */
  readonly tip: bigint | null;
  readonly endpoints: readonly EndpointHealth[];
  readonly explorer: string | null;
}

export interface Found {
  readonly kind: "transaction" | "signer" | "reservation" | "node";
  readonly label: string;
  readonly txId?: string;
  readonly chainId?: number;
  readonly signer?: Address;
  readonly nonce?: number;
  readonly reservationId?: string;
  readonly nodeId?: string;
}

export interface NonceRulerQuery {
  readonly chainId?: number;
  readonly from?: number;
  readonly to?: number;
}

export interface NonceRulerView {
  readonly lane: Lane;
  readonly from: number;
  readonly to: number;
  readonly cursor: number | null;
  /** How many the chain counts, as this node was last told. */
  readonly mined: number | null;
  /** Every nonce below this one is over. */
  readonly final: number;
  readonly spans: readonly NonceSpan[];
}
