import type { OwnSession } from "../domain/chain/witness.ts";

/** Key of the session lock, and the process id of the database backend that holds it. */
export interface HeldLock {
  /**
   * Key of the lock. It is new for each session, so that a lock which a lost session still holds on the server does not
   * block the next one.
   */
  readonly key: number;
  /** The database server's process id of the session. */
  readonly session: number;
}

/**
 * A database session with its lock. `missed`: locks of other instances that were already missing when this session
 * began.
 */
export interface LockSession extends HeldLock, Omit<OwnSession, "sinceMs"> {}

/**
 * A lock that lasts as long as one session between this process and the database. When the process ends, its connection
 * closes, the server drops the lock, and other nodes see this (`InstanceRecord.lock`) before the lease expires. The
 * lock only allows an earlier takeover; the fencing token makes the takeover safe. Behind a transaction pooler there is
 * no session: no lock is held, and the lease alone decides.
 */
export interface SessionLock {
  /** The session lock that is held now; null if there is none. */
  readonly held: LockSession | null;
  /**
   * Registers the only listener. If a lock is held, it is called at once with that lock; then at each change: with the
   * next lock, or with null when a lock is lost.
   */
  onChange(listener: (held: LockSession | null) => void): void;
  /**
   * Ends the database session and begins another. Called if the server does not show the lock that this process
   * believes it holds.
   */
  startOver(): void;
  close(): Promise<void>;
}
