/** Implements SessionLock as an advisory lock of PostgreSQL, on a separate session. */
import type pg from "pg";
import type { BackoffRule } from "../../../domain/pace/when.ts";
import type { LockSession, SessionLock } from "../../../ports/session-lock.ts";
import { listMissingLocks, type SessionLockRow, takeSessionLock } from "../statements/node-instance.ts";
import { DirectSession, type DirectSessionOptions } from "./direct-session.ts";

/**
 * Settings with which the server notices a lost client. It probes a client that is silent for three seconds, and ends
 * its session three seconds later: within a lease of ordinary length.
 */
const KEEP = `
  SET idle_session_timeout TO 0;
  SET tcp_keepalives_idle TO 3; SET tcp_keepalives_interval TO 1; SET tcp_keepalives_count TO 3`;

/**
 * Pauses before reconnecting. They are short: after losing its lock, the node sends nothing until its heartbeat has
 * published the loss.
 */
const RECONNECT: BackoffRule = { firstMs: 50, mostMs: 1_000 };

const KEYS = 2 ** 32;

export class PostgresSessionLock implements SessionLock {
  private readonly options: DirectSessionOptions;
  private readonly session: DirectSession;
  private listener: (held: LockSession | null) => void = () => undefined;
  private current: LockSession | null = null;
  private sessions = 0;

  constructor(options: DirectSessionOptions) {
    this.options = options;
    this.session = new DirectSession(options, {
      name: "fencepost session lock",
      reconnect: RECONNECT,
      begun: (client) => this.take(client),
      lost: () => this.change(null),
      pooled: () => options.telemetry.emit({ type: "instance.lock", state: "pooled" }),
    });
  }

  get held(): LockSession | null {
    return this.current;
  }

  onChange(listener: (held: LockSession | null) => void): void {
    this.listener = listener;
    if (this.current !== null) listener(this.current);
  }

  startOver(): void {
    this.change(null);
    this.session.drop();
  }

  close(): Promise<void> {
    this.listener = () => undefined;
    return this.session.close();
  }

  /**
   * Takes the session lock under a random key. It never waits: if another session holds the key, or the schema does not
   * exist yet, this session fails and the next one tries another key.
   */
  private async take(client: pg.Client) {
    const isFirst = this.sessions++ === 0;
    const key = Math.floor(this.options.entropy.random() * KEYS) - KEYS / 2;
    await client.query(KEEP);
    const { rows } = await client.query<SessionLockRow>(takeSessionLock.sql, [key]);
    const [row] = rows as [SessionLockRow];
    if (row.taken !== true) throw new Error(`the session lock ${key} could not be acquired`);
    const missing = await client.query<{ instanceId: string; counter: number }>(listMissingLocks.sql);
    const answeredMs = this.options.clock.monotonicMs();
    const missed = missing.rows.map((each) => ({ ...each, answeredMs }));
    this.change({ key, session: row.session, serverUpMs: row.serverUpMs, isFirst, missed });
  }

  private change(held: LockSession | null) {
    if (held === null && this.current === null) return;
    this.current = held;
    this.listener(held);
  }
}
