import type { OwnSession } from "../domain/chain/witness.ts";

/** Key of the lock, and the server process that holds it. */
export interface HeldLock {
  /** New for each session: a lock that a lost session still holds on the server does not block the next one. */
  readonly key: number;
  /** The server's process id of the session. */
  readonly session: number;
}

/** `missed`: a starting process has looked once before its session began. */
export interface LockSession extends HeldLock, Omit<OwnSession, "sinceMs"> {}

/**
 * A lock that lasts as long as one session between this process and the database. When the process ends, its connection
 * closes, the server drops the lock, and other nodes see that (`InstanceRecord.lock`) before the lease is overdue. It
 * only hints at an earlier takeover; the fence makes that safe. Behind a transaction pooler no session exists: no lock
 * is held, and the lease alone decides.
 */
export interface SessionLock {
  /** Null if none is held now. */
  readonly held: LockSession | null;
  /**
   * Called with the lock that is held, and at each change: with the next lock, or null when one is lost. One listener.
   */
  onChange(listener: (held: LockSession | null) => void): void;
  /** The server does not show the lock that this process believes to hold: it ends the session and begins another. */
  startOver(): void;
  close(): Promise<void>;
}
