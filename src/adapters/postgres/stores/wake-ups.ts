/**
 * Implements WakeUps through LISTEN and NOTIFY, over one session that is used for nothing else.
 *
 * A transaction that notifies takes a server-wide lock at its COMMIT, so no transaction that does other work notifies.
 * Instead, hints are collected for a moment and sent together, in separate transactions that do not wait for the disk.
 * If no session for LISTEN is possible, this is reported once, and hints are neither sent nor received.
 */
import type pg from "pg";
import type { BackoffRule } from "../../../domain/pace/when.ts";
import { WAKE_UPS, type WakeUp, type WakeUps } from "../../../ports/wake-ups.ts";
import { processIdOf } from "../session/connections.ts";
import { DirectSession, type DirectSessionOptions } from "../session/direct-session.ts";
import { notify } from "../statements/session.ts";

const CHANNEL = "fencepost";
/** Shortest pause between two notifications of a process. */
const PAUSE_MS = 20;
const RECONNECT: BackoffRule = { firstMs: 200, mostMs: 5_000 };

export class PostgresWakeUps implements WakeUps {
  private readonly options: DirectSessionOptions;
  private readonly unsent = new Set<WakeUp>();
  private listener: (wakeUp: WakeUp) => void = () => undefined;
  private listening: pg.Client | null = null;
  private cancelFlush: (() => void) | null = null;
  private readonly session: DirectSession;

  constructor(options: DirectSessionOptions) {
    this.options = options;
    this.session = new DirectSession(options, {
      name: "fencepost wake-ups",
      reconnect: RECONNECT,
      begun: (client) => this.begin(client),
      lost: () => {
        this.listening = null;
      },
      pooled: () => {
        const message =
          "the database is behind a pooler, through which LISTEN does not work: nodes poll for news instead";
        options.telemetry.emit({ type: "alert", severity: "WARNING", code: "NOTIFICATIONS_NEED_DIRECT_URL", message });
      },
    });
  }

  get isListening(): boolean {
    return this.listening !== null;
  }

  notify(wakeUp: WakeUp): void {
    this.unsent.add(wakeUp);
    this.cancelFlush ??= this.options.clock.after(PAUSE_MS, () => void this.flush());
  }

  listen(listener: (wakeUp: WakeUp) => void): void {
    this.listener = listener;
  }

  async close(): Promise<void> {
    await this.flush();
    this.listening = null;
    await this.session.close();
  }

  /**
   * A hint that cannot be sent is dropped: without it, polling finds the change a little later (docs/many-nodes.md).
   */
  private async flush() {
    this.cancelFlush?.();
    this.cancelFlush = null;
    const words = [...this.unsent];
    this.unsent.clear();
    if (words.length > 0) await this.listening?.query(notify.sql, [words.join(" ")]).catch(() => undefined);
  }

  private async begin(client: pg.Client) {
    client.on("notification", ({ processId, payload = "" }) => {
      // Ignore this session's own notifications, which the server returns to it.
      if (processId !== processIdOf(client)) this.wake(payload.split(" "));
    });
    // Do not wait for the disk: a notification that is lost in a crash is only a lost hint, and waiting would hold the
    // server-wide lock longer.
    await client.query(`SET synchronous_commit TO off; LISTEN ${CHANNEL}`);
    this.listening = client;
    this.wake(WAKE_UPS);
  }

  private wake(words: readonly string[]) {
    for (const wakeUp of WAKE_UPS) if (words.includes(wakeUp)) this.listener(wakeUp);
  }
}
