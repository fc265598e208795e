import type { Lane } from "../domain/lane.ts";
import type { State } from "../domain/transaction/transitions.ts";
import type { Problem } from "./schemas/problem.ts";

/**
 * Protocol between nodes of one database. Not part of the public API: both ends are Fencepost, at most one version
 * apart, so a field may be added here but none may change its meaning.
 */
export const PEER_CREATES_PATH = "/internal/v1/creates";

export const PEER_ACTIONS_PATH = "/internal/v1/actions";

export const PEER_KILLS_PATH = "/internal/v1/kills";

/**
 * Scheme of the `Authorization` header between nodes: it contains sender and receiver, signed
 * (src/adapters/peers/request-head.ts).
 */
export const PEER_SCHEME = "Fencepost-Instance";

/** Maximum body size between nodes: larger than a caller's batch (8 MiB), since an id is added to every create. */
export const PEER_BODY_LIMIT_BYTES = 16 * 1024 * 1024;

export interface PeerCreates {
  readonly creates: readonly PeerCreate[];
  /** True if the sender may have sent these creates before and got no answer. */
  readonly repeat: boolean;
}

export interface PeerCreate {
  readonly txId: string;
  /**
   * Name of the caller's API key; absent if there was none, or if the sender is an older node that does not send it.
   */
  readonly owner?: string;
  /** Share of the lane's queue that the caller's key may fill; absent for all of it. */
  readonly queueShare?: number;
  /**
   * The signer that the sender chose from the pool in `request`. The request still names the pool, so that a node that
   * does not support pools refuses it, instead of handling it as a request to that signer.
   */
  readonly chosen?: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** Results of forwarded creates: one per create, in order. */
export interface PeerResults {
  readonly results: readonly (PeerCreated | Problem)[];
}

export interface PeerAction {
  readonly lane: Lane;
  readonly action: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Name of the caller's API key, as in `PeerCreate`. */
  readonly owner?: string;
}

export type PeerActionResult = { readonly result: { readonly answer: unknown } | Problem };

export interface PeerCreated {
  readonly outcome: "created" | "existing";
  readonly txId: string;
  readonly lane: Lane;
  readonly requestId: string | null;
  readonly nonce: number | null;
  readonly state: State;
}
