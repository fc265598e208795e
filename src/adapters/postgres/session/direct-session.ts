/**
 * One connection for session state only: LISTEN, or a lock that lasts as long as the session. A transaction pooler has
 * no sessions, so the connection must lead to the server itself; if it leads to a pooler, no further attempt is made. A
 * lost connection is opened again.
 */
import pg from "pg";
import { type BackoffRule, backoffMs } from "../../../domain/pace/when.ts";
import type { Ports } from "../../../ports/ports.ts";
import { DEFAULT_SCHEMA, speakingIn } from "../rows/schema-name.ts";
import { readBackend } from "../statements/session.ts";
import { processIdOf, wireOf } from "./connections.ts";
import { PINNED_PATH } from "./opening.ts";

export interface DirectSessionOptions extends Pick<Ports, "clock" | "entropy" | "telemetry"> {
  /** URL of the server itself, not of a transaction pooler. */
  readonly directUrl: string;
  /** Name of the schema; default: `fencepost`. */
  readonly schema?: string;
}

type Needed = Omit<DirectSessionOptions, "telemetry">;

export interface SessionUse {
  /** `application_name` of the session, which PostgreSQL shows in its lists of sessions. */
  readonly name: string;
  readonly reconnect: BackoffRule;
  /** Called when a session has begun. If it throws, the session ends and another one begins. */
  begun(client: pg.Client): Promise<void>;
  /** Called when a session that had begun is over, whether it was lost or closed. */
  lost(): void;
  /** Called if there is a pooler between this process and the server: no session will ever begin. */
  pooled(): void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const KEEPALIVE_AFTER_MS = 3_000;
/**
 * Timeout of the first queries of a session. Without it, a server that accepts the connection and answers nothing would
 * block the session forever.
 */
const QUESTION_TIMEOUT_MS = 3_000;

export class DirectSession {
  private readonly options: Needed;
  private readonly use: SessionUse;
  private readonly closing = new AbortController();
  private client: pg.Client | null = null;
  /** The client once its session has begun; null before. */
  private begun: pg.Client | null = null;
  private readonly running: Promise<void>;

  constructor(options: Needed, use: SessionUse) {
    this.options = options;
    this.use = use;
    this.running = this.run();
  }

  /** Ends this session without a message, because the server may not receive anything; another session begins. */
  drop(): void {
    if (this.client !== null) wireOf(this.client).stream.destroy();
  }

  /**
   * Ends an open session properly, so that the server releases its locks. A session that is still opening is cut off:
   * the driver never settles a `connect` after `end`.
   */
  async close(): Promise<void> {
    this.closing.abort();
    if (this.begun === null) this.drop();
    else await this.begun.end().catch(() => undefined);
    await this.running;
  }

  private async run() {
    const { clock, entropy } = this.options;
    for (let failures = 1; !this.closing.signal.aborted; failures++) {
      const outcome = await this.keep().catch(() => "failed" as const);
      if (outcome === "pooled") return this.use.pooled();
      if (outcome === "lost") failures = 1;
      const waitMs = backoffMs(this.use.reconnect, failures, entropy.random());
      await clock.sleep(waitMs, this.closing.signal).catch(() => undefined);
    }
  }

  /** Begins a session and keeps it until the connection is lost. */
  private async keep() {
    const client = this.makeClient();
    this.client = client;
    const lost = new Promise<void>((resolve) => client.once("end", () => resolve()));
    void lost.then(() => this.begun === client && this.use.lost());
    try {
      await client.connect();
      if (await isPooled(client)) return "pooled";
      await client.query(`SET ${PINNED_PATH}`);
      await this.use.begun(client);
      this.begun = client;
      await lost;
      return "lost";
    } finally {
      // Drop the connection without a message: a server that does not respond must not block the next session or the
      // end of this one.
      this.drop();
      this.client = null;
      this.begun = null;
    }
  }

  private makeClient() {
    const client = new pg.Client({
      connectionString: this.options.directUrl,
      application_name: this.use.name,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUESTION_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_AFTER_MS,
    });
    client.on("error", () => undefined);
    return speakingIn(client, this.options.schema ?? DEFAULT_SCHEMA);
  }
}

async function isPooled(client: pg.Client) {
  const { rows } = await client.query<{ pid: number }>(readBackend.sql);
  return rows[0]?.pid !== processIdOf(client);
}
