/**
 * WakeUps through LISTEN and NOTIFY, over one connection that is used for nothing else.
 *
 * A transaction that notifies takes a lock of the whole server at its COMMIT, so no transaction that does work ever does:
 * hints are collected and leave a few times a second, in transactions of their own that do not wait for the disk.
 *
 * LISTEN belongs to a session. A transaction pooler has none to give, so the connection must lead to the server itself;
 * where it does not, nothing is listened to, and that is said once. A connection that is lost is made again.
 */
import pg from "pg";
import { type BackoffRule, backoffMs } from "../../domain/backoff.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Entropy } from "../../ports/entropy.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import { WAKE_UPS, type WakeUp, type WakeUps } from "../../ports/wake-ups.ts";
import { processIdOf } from "./connections.ts";
import { notify } from "./statements/notify.ts";
import { readBackend } from "./statements/read-backend.ts";

export interface WakeUpsOptions {
  /** Not through a transaction pooler. */
  readonly directUrl: string;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly telemetry: Telemetry;
}

const CHANNEL = "fencepost";
/** At most so often does a process notify, however much happens. */
const PAUSE_MS = 20;
const CONNECT_TIMEOUT_MS = 5_000;
const RECONNECT: BackoffRule = { firstMs: 200, mostMs: 5_000 };

export class PostgresWakeUps implements WakeUps {
  private readonly options: WakeUpsOptions;
  private readonly closing = new AbortController();
  private readonly untold = new Set<WakeUp>();
  private listener: (wakeUp: WakeUp) => void = () => undefined;
  private session: pg.Client | null = null;
  private cancelTelling: (() => void) | null = null;
  private readonly running: Promise<void>;

  constructor(options: WakeUpsOptions) {
    this.options = options;
    this.running = this.run();
  }

  tell(wakeUp: WakeUp): void {
    this.untold.add(wakeUp);
    this.cancelTelling ??= this.options.clock.after(PAUSE_MS, () => void this.flush());
  }

  hear(listener: (wakeUp: WakeUp) => void): void {
    this.listener = listener;
  }

  async close(): Promise<void> {
    await this.flush();
    this.closing.abort();
    await this.session?.end().catch(() => undefined);
    await this.running;
  }

  /** What cannot be told now is not kept: by the time it could be, everybody has looked. */
  private async flush(): Promise<void> {
    this.cancelTelling?.();
    this.cancelTelling = null;
    const words = [...this.untold];
    this.untold.clear();
    if (words.length > 0) await this.session?.query(notify.sql, [words.join(" ")]).catch(() => undefined);
  }

  private async run(): Promise<void> {
    const { clock, entropy } = this.options;
    for (let failures = 1; !this.closing.signal.aborted; failures++) {
      const outcome = await this.listen().catch(() => "failed" as const);
      if (outcome === "pooled") return;
      if (outcome === "lost") failures = 1;
      const waitMs = backoffMs(RECONNECT, failures, entropy.random());
      await clock.sleep(waitMs, this.closing.signal).catch(() => undefined);
    }
  }

  /** Listens until the connection is lost. */
  private async listen(): Promise<"pooled" | "lost"> {
    const client = this.makeClient();
    const lost = new Promise<void>((resolve) => client.once("end", () => resolve()));
    try {
      await client.connect();
      if (await isPooled(client)) return this.giveUp();
      client.on("notification", ({ processId, payload = "" }) => {
        // One's own words come back too, and were known before.
        if (processId !== processIdOf(client)) this.wake(payload.split(" "));
      });
      // A notification that a crash swallows is a hint that was lost; waiting for the disk would hold the lock for longer.
      await client.query(`SET synchronous_commit TO off; LISTEN ${CHANNEL}`);
      this.session = client;
      this.wake(WAKE_UPS);
      await lost;
      return "lost";
    } finally {
      this.session = null;
      await client.end().catch(() => undefined);
    }
  }

  private makeClient(): pg.Client {
    const client = new pg.Client({
      connectionString: this.options.directUrl,
      application_name: "fencepost wake-ups",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    });
    client.on("error", () => undefined);
    return client;
  }

  private wake(words: readonly string[]): void {
    for (const wakeUp of WAKE_UPS) if (words.includes(wakeUp)) this.listener(wakeUp);
  }

  private giveUp(): "pooled" {
    this.options.telemetry.emit({
      type: "alert",
      severity: "WARNING",
      code: "NOTIFICATIONS_NEED_DIRECT_URL",
      message: "the database is behind a pooler, where nobody can listen: nodes look for news instead of being told",
    });
    return "pooled";
  }
}

async function isPooled(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>(readBackend.sql);
  return rows[0]?.pid !== processIdOf(client);
}
