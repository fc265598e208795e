import type { Lane } from "../domain/lane.ts";
import type { Intent } from "../domain/transaction/transaction.ts";

/** Something that only the owner of a lane can do, enqueued for it in the database. */
export interface LeftRequest {
  readonly leftId: string;
  readonly lane: Lane;
  /** Name that every node knows. */
  readonly action: string;
  /** JSON. */
  readonly body: string;
  /** Name of the API key that the caller showed. */
  readonly owner: string | null;
  /** Carried out again after a crash it is still done once. */
  readonly repeatable: boolean;
}

export interface BegunRequest extends LeftRequest {
  /**
   * True: this owner or the one before it began the request, and there is no answer. The request may have been carried
   * out.
   */
  readonly begunBefore: boolean;
}

/** State of a waiting request. */
export interface LeftStanding {
  readonly leftId: string;
  readonly begun: boolean;
  /** JSON; null: none yet. */
  readonly answer: string | null;
}

/** True: there are intents in the intake table, or waiting requests. */
export interface WhatWaits {
  readonly intents: boolean;
  readonly requests: boolean;
}

/**
 * The table of waiting requests, for lanes whose owner has no URL. It touches no row of a lane: the owner carries a
 * request out under its fence, as if it had been asked directly. Creates that were not begun in time go to the intake
 * table; that and sends inside a caller's own transaction are the only writes of intents without a fence.
 */
export interface LeftRequestStore {
  /**
   * Durable once this resolves, in this order, all or none. Each is begun within `forMs` or never. Throws `StoreUnavailable`
   * (nothing was written), `OutcomeUnknown`.
   */
  leaveRequests(requests: readonly LeftRequest[], forMs: number): Promise<void>;
  /** For any lane, of this node or another: a node with ten thousand lanes does not send their names many times a second to learn that none has anything. */
  whatWaits(): Promise<WhatWaits>;
  /** Those of these lanes without an answer and in time, oldest first, now begun by this instance; none of `except`. */
  beginRequests(
    lanes: readonly Lane[],
    instanceId: string,
    except: readonly string[],
  ): Promise<readonly BegunRequest[]>;
  /** Kept only if the request is still this instance's: another owner may have begun it since. */
  answerRequest(leftId: string, instanceId: string, answer: string): Promise<void>;
  /** Nothing was done: the lane's next owner begins it anew. */
  putBackRequest(leftId: string, instanceId: string): Promise<void>;
  /** One snapshot. What is missing in the answer is nowhere. */
  leftStanding(leftIds: readonly string[]): Promise<readonly LeftStanding[]>;
  /**
   * True: it was not begun, and never will be. The intents are then in the intake table, in this order: accepted, each
   * reaches a final state.
   */
  withdrawRequest(leftId: string, accepts: readonly Intent[]): Promise<boolean>;
}
