import type { Lane } from "../domain/lane.ts";

/** Something that only the owner of a lane can do, left for it in the database. */
export interface LeftRequest {
  readonly leftId: string;
  readonly lane: Lane;
  /** By the name that every node knows it under. */
  readonly action: string;
  /** JSON. */
  readonly body: string;
  /** The name of the API key that the caller showed where it was heard. */
  readonly owner: string | null;
  /** Carried out again after a crash it is still done once. */
  readonly repeatable: boolean;
}

export interface BegunRequest extends LeftRequest {
  /** By this owner or the one before it, and without an answer since: it may have been carried out. */
  readonly begunBefore: boolean;
}

/** How it stands with a request that was left. */
export interface LeftStanding {
  readonly leftId: string;
  readonly begun: boolean;
  /** JSON; null: none yet. */
  readonly answer: string | null;
}

/** Whether there is anything to take up: intents of the intake table, requests that were left. */
export interface WhatWaits {
  readonly intents: boolean;
  readonly requests: boolean;
}

/**
 * Requests by way of the database, for lanes whose owner cannot be asked. No row of a lane is touched here: the owner carries
 * a request out under its fence, as if it had been asked itself.
 */
export interface LeftRequestStore {
  /** Durable once this resolves. It is begun within `forMs` or never. Throws `StoreUnavailable` (it was not left), `OutcomeUnknown`. */
  leaveRequest(request: LeftRequest, forMs: number): Promise<void>;
  /** Of any lane at all, of this node or another: the names of ten thousand lanes are not gone through many times a second to learn that none has anything. */
  whatWaits(): Promise<WhatWaits>;
  /** Those of these lanes without an answer and in time, oldest first, now begun by this instance; none of `except`. */
  beginRequests(
    lanes: readonly Lane[],
    instanceId: string,
    except: readonly string[],
  ): Promise<readonly BegunRequest[]>;
  /** Kept only where the request is still this instance's: another owner may have begun it since. */
  answerRequest(leftId: string, instanceId: string, answer: string): Promise<void>;
  /** Nothing was done: the lane's next owner begins it anew. */
  putBackRequest(leftId: string, instanceId: string): Promise<void>;
  /** One snapshot. What is missing in the answer is nowhere. */
  leftStanding(leftIds: readonly string[]): Promise<readonly LeftStanding[]>;
  /** True: nobody had begun it, and nobody will. */
  withdrawRequest(leftId: string): Promise<boolean>;
}
