import type { LockSession, SessionLock } from "../../src/ports/session-lock.ts";
import type { MemoryDatabase } from "./memory-store.ts";

const RECONNECT_MS = 50;

/** One process's session with an in-memory database, and the lock that lasts as long as the session. */
export class MemorySessionLock implements SessionLock {
  private readonly database: MemoryDatabase;
  private current: LockSession | null = null;
  private listener: (held: LockSession | null) => void = () => undefined;
  private away = false;
  private sessions = 0;

  constructor(database: MemoryDatabase) {
    this.database = database;
    this.begin();
  }

  get held(): LockSession | null {
    return this.current;
  }

  onChange(listener: (held: LockSession | null) => void): void {
    this.listener = listener;
    if (this.current !== null) listener(this.current);
  }

  startOver(): void {
    this.interrupt();
  }

  async close(): Promise<void> {
    this.listener = () => undefined;
    this.cut();
  }

  /** Makes the server end the session: the process is notified and opens another one. */
  interrupt(): void {
    this.end();
    this.database.clock.after(RECONNECT_MS, () => this.begin());
  }

  /** Simulates a lost network or a dead process: no new session until `heal`. */
  cut(): void {
    this.away = true;
    this.end();
  }

  heal(): void {
    if (!this.away) return;
    this.away = false;
    this.begin();
  }

  /** Makes the server end the session without notifying the node. */
  vanish(): void {
    if (this.current !== null) this.database.state.locks.delete(this.current.key);
  }

  private begin(): void {
    if (this.away || this.current !== null) return;
    const isFirst = this.sessions++ === 0;
    const { key, serverUpMs } = this.database.beginSession();
    const { instances, locks, published } = this.database.state;
    const answeredMs = this.database.clock.monotonicMs();
    const missed = [...instances.values()]
      .filter(
        ({ dead, instanceId }) => !dead && published.has(instanceId) && !locks.has(Number(published.get(instanceId))),
      )
      .map(({ instanceId, counter }) => ({ instanceId, counter, answeredMs }));
    this.change({ key, session: key, serverUpMs, isFirst, missed });
  }

  private end(): void {
    this.vanish();
    this.change(null);
  }

  private change(held: LockSession | null): void {
    if (held === null && this.current === null) return;
    this.current = held;
    this.listener(held);
  }
}
