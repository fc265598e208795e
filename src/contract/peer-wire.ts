import type { Lane } from "../domain/lane.ts";
import type { State } from "../domain/transaction/transitions.ts";
import type { Problem } from "./schemas/problem.ts";

/**
 * How nodes of one database speak to each other. Not part of the public API: both ends are Fencepost, at most one version
 * apart, so a field may be added here but none may change its meaning.
 */
export const PEER_CREATES_PATH = "/internal/v1/creates";

export const PEER_ACTIONS_PATH = "/internal/v1/actions";

export const PEER_KILLS_PATH = "/internal/v1/kills";

/** Content of the header `Authorization`: sender and receiver, signed (src/adapters/peers/request-head.ts). */
export const PEER_SCHEME = "Fencepost-Instance";

/** Beyond what a batch of callers may be (8 MiB), since every create brings its id along. */
export const PEER_BODY_LIMIT_BYTES = 16 * 1024 * 1024;

export interface PeerCreates {
  readonly creates: readonly PeerCreate[];
  /** The sender may have sent these before, without an answer. */
  readonly repeat: boolean;
}

export interface PeerCreate {
  readonly txId: string;
  /** The name of the caller's API key; absent if there was none, and from a node that does not know owners yet. */
  readonly owner?: string;
  /** The part of the lane's queue that this key may fill; absent: all of it. */
  readonly queueShare?: number;
  /**
   * The signer that the sender chose of the pool that `request` names. The request keeps the pool's name, so that a node
   * that knows of no pools refuses it, instead of taking it for a request to that signer.
   */
  readonly chosen?: string;
  readonly request: Readonly<Record<string, unknown>>;
}

/** One per create, in order. */
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
