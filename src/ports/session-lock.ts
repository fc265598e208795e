import type { OwnSession } from "../domain/witness.ts";

/** What others look for, and who on the server holds it. */
export interface HeldLock {
  /** Another one for each session: what a lost session still holds on the server does not stand in the way of the next. */
  readonly key: number;
  /** The server's own number for the session. */
  readonly session: number;
}

/** `missed`: a starting process has looked once by the time that its session begins. */
export interface LockSession extends HeldLock, Omit<OwnSession, "sinceMs"> {}

/**
 * A lock that lasts exactly as long as one session between this process and the database. When the process ends, its
 * connection closes, the server drops the lock, and others see that (`InstanceRecord.lock`): its death is noticed when it
 * is certain, not when its lease is overdue. It is a hint to take over sooner; the fence is what makes that safe. Where no
 * session can be had (behind a transaction pooler) nothing is ever held, and the lease alone decides.
 */
export interface SessionLock {
  /** Null: none, now. */
  readonly held: LockSession | null;
  /** Called with the lock that is held, and at each change: with the next lock, or with null when one is lost. One listener. */
  hear(listener: (held: LockSession | null) => void): void;
  /** The server does not show the lock that we believe to hold: give the session up, and begin another. */
  startOver(): void;
  close(): Promise<void>;
}
