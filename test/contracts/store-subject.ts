import type { Policies } from "../../src/domain/policy/policy.ts";
import type { Problem } from "../../src/domain/text/refusal.ts";
import type { Intent } from "../../src/domain/transaction/transaction.ts";
import type { KeyStore } from "../../src/ports/key-store.ts";
import type { KillStore } from "../../src/ports/kill-store.ts";
import type { LaneStore } from "../../src/ports/lane-store.ts";
import type { LeaseStore } from "../../src/ports/lease-store.ts";
import type { LeftRequestStore } from "../../src/ports/left-request-store.ts";
import type { NoticeStore } from "../../src/ports/notice-store.ts";
import type { PolicyStore } from "../../src/ports/policy-store.ts";
import type { QueryStore } from "../../src/ports/query-store.ts";
import type { SessionLock } from "../../src/ports/session-lock.ts";
import type { SightStore } from "../../src/ports/sight-store.ts";

export type Store = LeaseStore &
  LaneStore &
  QueryStore &
  SightStore &
  KeyStore &
  KillStore &
  NoticeStore &
  LeftRequestStore &
  PolicyStore & { close(): Promise<void> };

/** A node of the release before, which leaves creates in the intake table and waits there for their results. */
export interface OlderSender {
  /** In this order. */
  leave(...intents: readonly Intent[]): Promise<void>;
  /**
   * Answers the callers that the intents are accepted. Returns those that were neither dequeued nor declined before.
   */
  accept(...txIds: readonly string[]): Promise<readonly string[]>;
  /** Why it was declined; null: it was not. */
  declined(txId: string): Promise<Problem | null>;
}

/** One database, fresh for each suite, that several stores can be connected to. */
export interface StoreSubject {
  /** With these policies in force for every store; none given: no limits. */
  connect(policies?: Policies): Promise<Store>;
  /** A session with the database past any pooler, and its lock, held. */
  lock(): Promise<SessionLock>;
  /** Puts the heartbeat of an instance into the past, by the database's clock. */
  expire(instanceId: string): Promise<void>;
  /** Puts the end of the time for approval into the past, by the database's clock. */
  letApprovalExpire(txId: string): Promise<void>;
  /** Puts the `validUntil` of a transaction into the past, by the database's clock. */
  letTimeEnd(txId: string): Promise<void>;
  /** In the database's time. */
  now(): Promise<Date>;
  /** Lets the database's clock go on by a little, so that two moments differ. */
  tick(): Promise<void>;
  /** Commits a transaction of a caller with these intents, in this order. */
  intake(...intents: readonly Intent[]): Promise<void>;
  readonly older: OlderSender;
  /** The database comes back as another one, which may lack commits. */
  changeHistory(): Promise<void>;
  close(): Promise<void>;
}
