import type { OutcomeFilter, Progress, Subscriber, SubscriberTerm } from "../domain/webhooks/subscriber.ts";
import type { LaneOwner } from "./lease-store.ts";

/** A subscriber as listed, with its backlog in the feed at the time of the read. */
export interface SubscriberRecord extends Subscriber {
  readonly token: number;
  /** Instance that delivers for it; null if none does, or if that instance is dead. */
  readonly owner: Pick<LaneOwner, "instanceId" | "nodeId"> | null;
  /** Number of outcomes in the feed above its position, whether it wants them or not. */
  readonly behind: number;
  /** Time of the first of them; null if there is none. */
  readonly behindSince: Date | null;
  /** Time of the read, by the database's clock. */
  readonly readAt: Date;
}

export interface NewSubscriber
  extends Pick<Subscriber, "subscriberId" | "name" | "url" | "filter" | "secretId" | "giveUpAfterMs" | "createdBy"> {
  /** Position after which it begins; null: the end of the feed. */
  readonly after: number | null;
}

/** A change by a person. Each ends the present term, so that nothing of an earlier term is stored afterwards. */
export type SubscriberChange =
  | ({ readonly action: "change" } & Partial<Pick<Subscriber, "url" | "filter" | "giveUpAfterMs">>)
  | { readonly action: "pause" | "resume" }
  /** Continues after another position. */
  | { readonly action: "replay"; readonly after: number }
  /** Begins the next generation of the secret, if `generation` is still the present one. */
  | {
      readonly action: "rotate";
      readonly generation: number;
      readonly secretId: string;
      readonly overlapMs: number;
    };

/** A subscriber as somebody read it who may change it. With another filter it may be one that they may not. */
export interface SeenSubscriber {
  readonly subscriberId: string;
  readonly filter: OutcomeFilter;
}

export interface SubscriberDecision {
  readonly seen: SeenSubscriber;
  readonly change: SubscriberChange;
  readonly actor: string;
  /** Why; null if no reason was given. */
  readonly reason: string | null;
}

/** A subscriber whose outcomes the calling instance delivers now. */
export interface ClaimedSubscriber {
  readonly subscriber: Subscriber;
  readonly term: SubscriberTerm;
  readonly done: readonly number[];
}

/** State of a delivery, as stored. `paused`: the delivering node pauses it, which ends the term. */
export interface StoredProgress
  extends Progress,
    Pick<Subscriber, "failingSince" | "lastAnswer" | "nextTryAt" | "deliveredAt"> {
  readonly term: SubscriberTerm;
  readonly paused: { readonly by: "GONE" | "GAVE_UP"; readonly why: string } | null;
}

/** Subscribers of the completion feed, and the terms under which instances deliver for them. */
export interface SubscriberStore {
  /** All subscribers, by name. */
  subscribers(): Promise<readonly SubscriberRecord[]>;
  /** "taken": another subscriber has this name. "full": there are as many as may be. In both cases nothing is added. */
  addSubscriber(subscriber: NewSubscriber, actor: string): Promise<"added" | "taken" | "full">;
  /** Returns false if the subscriber does not exist, or has another filter or generation than was seen. */
  changeSubscriber(decision: SubscriberDecision): Promise<boolean>;
  removeSubscriber(seen: SeenSubscriber, actor: string): Promise<boolean>;
  /**
   * Begins a term for each of these subscribers that is not paused and has no live owner. Keeps the terms of those that
   * the instance owns already. Skips the others, and those that another transaction has locked.
   */
  claimSubscribers(subscriberIds: readonly string[], instanceId: string): Promise<readonly ClaimedSubscriber[]>;
  /**
   * Stores the progress of each term that is still in force. Returns the ids of those that were stored; the terms of
   * all others are over.
   */
  writeDeliveries(progress: readonly StoredProgress[], instanceId: string): Promise<ReadonlySet<string>>;
}
