import type { Policies } from "../../src/domain/policy/policy.ts";
import type { Problem } from "../../src/domain/text/refusal.ts";
import type { Intent } from "../../src/domain/transaction/transaction.ts";
import type { AbiStore } from "../../src/ports/abi-store.ts";
import type { FigureStore } from "../../src/ports/figure-store.ts";
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
import type { SubscriberStore } from "../../src/ports/subscriber-store.ts";

export type Store = LeaseStore &
  LaneStore &
  QueryStore &
  SightStore &
  FigureStore &
  AbiStore &
  KeyStore &
  KillStore &
  NoticeStore &
  LeftRequestStore &
  PolicyStore &
  SubscriberStore & { close(): Promise<void> };

/** A node of the previous release, which enqueues creates in the intake table and waits there for their results. */
export interface OlderSender {
  /** Enqueues the intents in the given order. */
  leave(...intents: readonly Intent[]): Promise<void>;
  /**
   * Reports the intents to their callers as accepted. Returns the intents that no owner had taken from the queue or
   * declined before.
   */
  accept(...txIds: readonly string[]): Promise<readonly string[]>;
  /** The reason why the intent was declined; null if it was not. */
  declined(txId: string): Promise<Problem | null>;
}

/** A database for one suite, to which several stores can be connected. */
export interface StoreSubject {
  /** Opens a store and puts these policies in force for every store; without an argument there are no limits. */
  connect(policies?: Policies): Promise<Store>;
  /** Opens a direct database session that bypasses any pooler and holds its session lock. */
  lock(): Promise<SessionLock>;
  /** Puts the heartbeat of an instance into the past, by the database's clock. */
  expire(instanceId: string): Promise<void>;
  /** Puts the deadline for approval into the past, by the database's clock. */
  letApprovalExpire(txId: string): Promise<void>;
  /** Puts the `validUntil` of a transaction into the past, by the database's clock. */
  letTimeEnd(txId: string): Promise<void>;
  /** The current time by the database's clock. */
  now(): Promise<Date>;
  /** Waits until the database's clock has advanced a little, so that two times differ. */
  tick(): Promise<void>;
  /** Commits a caller's own database transaction with these intents, in this order. */
  intake(...intents: readonly Intent[]): Promise<void>;
  readonly older: OlderSender;
  /** Gives the database another history, as after a failover or restore. Commits of the old history may be missing. */
  changeHistory(): Promise<void>;
  close(): Promise<void>;
}
