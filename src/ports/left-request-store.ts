import type { Lane } from "../domain/lane.ts";
import type { Intent } from "../domain/transaction/transaction.ts";

/** A request that only the owner of a lane can perform, enqueued for it in the database. */
export interface LeftRequest {
  readonly leftId: string;
  readonly lane: Lane;
  /** Name of the action, the same on every node. */
  readonly action: string;
  /** Body of the request as JSON. */
  readonly body: string;
  /** Name of the API key that the caller used. */
  readonly owner: string | null;
  /** True if the request may be repeated after a crash and still takes effect only once. */
  readonly repeatable: boolean;
}

export interface BegunRequest extends LeftRequest {
  /**
   * True if the request was begun before, by this owner or the previous one, and has no result: it may already have
   * been carried out.
   */
  readonly begunBefore: boolean;
}

/** State of an enqueued request. */
export interface LeftStanding {
  readonly leftId: string;
  readonly begun: boolean;
  /** Result as JSON; null: there is none yet. */
  readonly answer: string | null;
}

/** What waits in the database: intents in the intake table, and enqueued requests. */
export interface WhatWaits {
  readonly intents: boolean;
  readonly requests: boolean;
}

/**
 * Table of enqueued requests, for lanes whose owner has no URL. It changes no row of a lane: the owner carries a
 * request out as if it had received it directly. Creates that were not begun in time are moved to the intake table.
 * Only such moves, and sends inside a caller's own database transaction, write intents without owning the lane.
 */
export interface LeftRequestStore {
  /**
   * Enqueues requests. Once this resolves they are durable, in this order, all or none. A request that is not begun
   * within `forMs` is never begun. Throws `StoreUnavailable` (nothing was written), `OutcomeUnknown`.
   */
  leaveRequests(requests: readonly LeftRequest[], forMs: number): Promise<void>;
  /**
   * Checks if any work waits, for lanes of this node or of others. It takes no list of lanes: a node with ten thousand
   * lanes would send their names many times a second.
   */
  whatWaits(): Promise<WhatWaits>;
  /**
   * Marks requests of these lanes as begun by this instance and returns them, oldest first. Requests that are too late,
   * have a result, or are in `except` are left out.
   */
  beginRequests(
    lanes: readonly Lane[],
    instanceId: string,
    except: readonly string[],
  ): Promise<readonly BegunRequest[]>;
  /** Stores the result of a request, unless another owner has begun the request since. */
  answerRequest(leftId: string, instanceId: string, answer: string): Promise<void>;
  /** Returns a request to the queue: nothing was done, and the lane's next owner begins it anew. */
  putBackRequest(leftId: string, instanceId: string): Promise<void>;
  /** States of these requests, from one snapshot. A request that is missing from the result does not exist. */
  leftStanding(leftIds: readonly string[]): Promise<readonly LeftStanding[]>;
  /**
   * Withdraws an enqueued request. Returns true if it was not begun: it never will be. Its intents are then in the
   * intake table, in their original order: they are accepted, and each reaches a final state.
   */
  withdrawRequest(leftId: string, accepts: readonly Intent[]): Promise<boolean>;
}
