/**
 * Connections to the database, with pipelining: all statements sent before the first `await` leave in one write and
 * cost one round trip.
 */
import { setMaxListeners } from "node:events";
import type { Duplex } from "node:stream";
import pg from "pg";
import type { Clock } from "../../../ports/clock.ts";
import { StoreUnavailable } from "../../../ports/lane-store.ts";
import { openRead, readBackend } from "../statements/session.ts";
import type { Command } from "../statements/statement.ts";
import { asStoreError } from "./errors.ts";
import { PINNED_PATH } from "./opening.ts";
import { type Answer, Pipeline, type Step, stepOf, type Wording } from "./pipeline.ts";

export interface SessionOptions {
  /**
   * True if statements are prepared by name, to be parsed and planned once per connection. PgBouncer before 1.21, in
   * transaction mode, cannot keep them.
   */
  readonly preparedStatements: boolean;
  /**
   * True if the server itself ends a transaction that takes too long, even while it waits for its client (PostgreSQL
   * 17).
   */
  readonly hasTransactionTimeout: boolean;
  readonly schema: string;
}

export interface ConnectionOptions extends SessionOptions {
  readonly databaseUrl: string;
  readonly clock: Clock;
  readonly max: number;
  /** Longest wait for a connection, and longest use of it. */
  readonly deadlineMs: number;
}

/** The rows that each command returns. */
export type Answers<Commands extends readonly Command[]> = {
  readonly [Place in keyof Commands]: Commands[Place] extends Command<infer Row> ? readonly Row[] : never;
};

const BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

const INT8 = 20;
const NUMERIC = 1700;

/**
 * Parsers for column types. int8 fits a number, because nonces, blocks and counters are below 2^53; numeric is wei or a
 * WAL position.
 */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format: "text" | "binary") => {
    if (oid === INT8) return Number;
    if (oid === NUMERIC) return BigInt;
    return pg.types.getTypeParser(oid, format);
  }) as typeof pg.types.getTypeParser,
};

/** The error with which a connection ended while no statement was open on it. */
const endings = new WeakMap<pg.ClientBase, Error>();

/** How long a returned connection is kept for immediate reuse before it goes back to the pool. */
const AT_HAND_MS = 1_000;

/** If a timer fires this many ms late, this process stalled, not the database. */
const NOT_SCHEDULED_MS = 250;

/** How long open statements may still run when the store closes; then they reject. */
const LAST_ANSWERS_MS = 500;

/**
 * A few connections that are opened when needed and replaced when broken. A connection that was just returned is kept
 * for immediate reuse: the pool would provide it one turn of the event loop later, after all the work that the last
 * response caused.
 */
export class Connections {
  private readonly pool: pg.Pool;
  private readonly options: ConnectionOptions;
  private readonly atHand: pg.PoolClient[] = [];
  private readonly inUse = new Set<Session>();
  private readonly cutOff = new AbortController();
  private waiting = 0;
  private cancelReturn: (() => void) | null = null;

  constructor(options: ConnectionOptions) {
    this.options = options;
    this.pool = new pg.Pool({
      connectionString: options.databaseUrl,
      application_name: "fencepost",
      max: options.max,
      pipeline: true,
      types,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      connectionTimeoutMillis: options.deadlineMs,
      allowExitOnIdle: true,
    });
    // Allow any number of listeners: any number of callers may wait for a connection, so Node.js's leak warning would
    // be wrong.
    setMaxListeners(0, this.cutOff.signal);
    // Listen for errors of the connection: without a listener, a broken connection would end the process. The statement
    // that runs on it rejects by itself.
    this.pool.on("error", () => undefined);
    this.pool.on("connect", (client) => client.on("error", (error) => endings.set(client, error)));
  }

  /**
   * Runs `work` on a connection that nothing else uses meanwhile. A connection that fails in an unexpected way, or is
   * still busy at the deadline, is destroyed, so that the server sees it end.
   */
  async use<T>(work: (session: Session) => Promise<T>, deadlineMs = this.options.deadlineMs): Promise<T> {
    const client = this.takeAtHand() ?? (await this.connect());
    const session = new Session(client, this.options);
    const { clock } = this.options;
    // Check the deadline only after all received data was read: after a stall of this process, timers run before the
    // response in the socket is read.
    const cancelDeadline = clock.after(deadlineMs, () =>
      clock.soon(() => this.inUse.has(session) && session.destroy()),
    );
    this.inUse.add(session);
    try {
      return await work(session);
    } finally {
      this.inUse.delete(session);
      cancelDeadline();
      this.giveBack(client, session.reusable);
    }
  }

  private takeAtHand() {
    for (let client = this.atHand.pop(); client !== undefined; client = this.atHand.pop()) {
      if (wireOf(client).stream.writable) return client;
      client.release(true);
    }
    return null;
  }

  private async connect(): Promise<pg.PoolClient> {
    this.waiting++;
    const { clock, deadlineMs } = this.options;
    const dueMs = clock.monotonicMs() + deadlineMs;
    try {
      return await this.connectUntilCutOff();
    } catch (error) {
      // The driver's timer runs before its sockets are read. If the timer fired late, the server may have answered in
      // time. Then the error is marked as busy, which means that a retry may succeed.
      const busy = clock.monotonicMs() - dueMs >= NOT_SCHEDULED_MS;
      const message = `no connection: ${error instanceof Error ? error.message : error}`;
      throw new StoreUnavailable(message, { cause: error, busy });
    } finally {
      this.waiting--;
    }
  }

  private connectUntilCutOff(): Promise<pg.PoolClient> {
    const { signal } = this.cutOff;
    return new Promise((resolve, reject) => {
      const cut = () => reject(new Error("the connections to the database were closed"));
      signal.addEventListener("abort", cut, { once: true });
      this.pool
        .connect()
        .then((client) => (signal.aborted ? client.release(true) : resolve(client)), reject)
        .finally(() => signal.removeEventListener("abort", cut));
    });
  }

  /**
   * Returns a connection. If callers wait for one at the pool, they get it. Otherwise it is kept for a moment and then
   * goes back to the pool, which notices when it breaks.
   */
  private giveBack(client: pg.PoolClient, reusable: boolean) {
    if (!reusable || this.waiting > 0 || this.pool.ending) {
      client.release(!reusable);
      return;
    }
    this.atHand.push(client);
    this.cancelReturn ??= this.options.clock.after(AT_HAND_MS, () => this.returnAll());
  }

  private returnAll() {
    this.cancelReturn?.();
    this.cancelReturn = null;
    for (const client of this.atHand.splice(0)) client.release(!wireOf(client).stream.writable);
  }

  /** Reads with several statements on one snapshot of the database, in one round trip. */
  async read<const Commands extends readonly Command[]>(...commands: Commands): Promise<Answers<Commands>> {
    try {
      return await this.use(async (session) => {
        const [, , found] = await session.together(() =>
          Promise.all([
            session.begin(BEGIN_READ),
            session.run(openRead(this.options.deadlineMs)),
            session.all(commands),
            session.control("COMMIT"),
          ]),
        );
        return found;
      });
    } catch (error) {
      throw asStoreError(error);
    }
  }

  /** True if there is a connection pooler between this process and the server. */
  async arePooled(): Promise<boolean> {
    return this.use(async (session) => (await session.run(readBackend()))[0]?.pid !== session.processId);
  }

  /** True if the store is closing: no new work is started. */
  get closing(): boolean {
    return this.pool.ending;
  }

  async close(): Promise<void> {
    this.returnAll();
    const cancelCut = this.options.clock.after(LAST_ANSWERS_MS, () => {
      this.cutOff.abort();
      for (const session of this.inUse) session.destroy();
    });
    await this.pool.end().finally(cancelCut);
  }
}

export type Reading = Pick<Connections, "read">;

/** Reads with a single statement. */
export async function ask<Row>(reading: Reading, command: Command<Row>): Promise<readonly Row[]> {
  const [rows] = await reading.read(command);
  return rows;
}

/** Statements collected for one write to the socket, and the error if one of them cannot be encoded. */
interface Gathering {
  readonly steps: Step[];
  unwritable: { readonly error: unknown } | null;
}

export class Session {
  private readonly client: pg.PoolClient;
  private readonly options: SessionOptions;
  private gathering: Gathering | null = null;
  /** True if this process ended the session because it took too long. */
  reachedDeadline = false;
  private confused = false;

  constructor(client: pg.PoolClient, options: SessionOptions) {
    this.client = client;
    this.options = options;
  }

  /**
   * True if the connection can be used again: it is open, not inside a transaction, and its prepared statements are
   * known.
   */
  get reusable(): boolean {
    return !this.reachedDeadline && !this.confused && !this.isInTransaction;
  }

  get isInTransaction(): boolean {
    return this.client.getTransactionStatus() !== "I";
  }

  /** The error with which the connection ended between two statements; null if no end is known. */
  get endedBy(): Error | null {
    return endings.get(this.client) ?? null;
  }

  /** Process id of the backend, as reported at connect by the server or by a pooler before it. */
  get processId(): number | null {
    return processIdOf(this.client);
  }

  async run<Row>({ name, sql, values }: Command<Row>): Promise<readonly Row[]> {
    const { rows } = await this.step({ name: this.options.preparedStatements ? name : null, sql }, values);
    return rows as readonly Row[];
  }

  all<const Commands extends readonly Command[]>(commands: Commands): Promise<Answers<Commands>> {
    return Promise.all(commands.map((command) => this.run(command))) as Promise<Answers<Commands>>;
  }

  /**
   * Begins a transaction and pins the search path: until its end, names of functions and types mean PostgreSQL's own.
   */
  begin(how: string): Promise<unknown> {
    return Promise.all([this.control(how), this.control(`SET LOCAL ${PINNED_PATH}`)]);
  }

  /** Runs BEGIN, COMMIT or ROLLBACK; resolves with the server's command tag. */
  async control(sql: string): Promise<string> {
    return (await this.step({ name: null, sql }, [])).tag;
  }

  /**
   * Sends all statements of `write` in one write to the socket.
   *
   * The server responds more cheaply if several statements share one Sync. But until a Sync arrives, only
   * `transaction_timeout` ends a transaction whose bytes stop arriving. So before PostgreSQL 17, which introduced that
   * timeout, each statement has its own Sync. COMMIT always has its own Sync: if the data stops arriving while the
   * session holds the feed's counter, the session waits after a Sync, where shorter limits apply.
   */
  together<T>(write: () => T): T {
    const gathering: Gathering = { steps: [], unwritable: null };
    this.gathering = gathering;
    try {
      return write();
    } finally {
      this.gathering = null;
      this.leave(gathering);
    }
  }

  private step(statement: Wording, values: readonly unknown[]): Promise<Answer> {
    const { gathering } = this;
    if (gathering === null) return this.together(() => this.step(statement, values));
    return new Promise((resolve, reject) => {
      try {
        gathering.steps.push(stepOf(statement, values, { resolve, reject }));
      } catch (error) {
        gathering.unwritable = { error };
        reject(error);
      }
    });
  }

  /** Sends the collected statements. If one of them cannot be encoded, none is sent, because the last may be COMMIT. */
  private leave({ steps, unwritable }: Gathering) {
    if (unwritable !== null) {
      for (const { reject } of steps) reject(unwritable.error);
      return;
    }
    const { schema, hasTransactionTimeout } = this.options;
    const onConfused = () => {
      this.confused = true;
    };
    const isLast = ({ sql }: Step) => sql === "COMMIT";
    const whole = hasTransactionTimeout ? steps.filter((step) => !isLast(step)) : [];
    const apart = hasTransactionTimeout ? steps.filter(isLast) : steps;
    const { stream } = wireOf(this.client);
    stream.cork();
    for (const part of [...(whole.length > 0 ? [whole] : []), ...apart.map((step) => [step])]) {
      this.client.query(new Pipeline(part, { client: this.client, types, onConfused, schema }));
    }
    stream.uncork();
  }

  /**
   * Ends the connection. The server may or may not continue with the statements it received; every statement still open
   * here rejects.
   */
  destroy(): void {
    this.reachedDeadline = true;
    wireOf(this.client).stream.destroy();
  }
}

/** Process id of the connection's backend. The driver keeps it in a field that its types do not declare. */
export function processIdOf(client: pg.ClientBase): number | null {
  return (client as unknown as { readonly processID: number | null }).processID;
}

/** Socket of the connection. The driver keeps it in a field that its types do not declare. */
export function wireOf(client: pg.ClientBase): { readonly stream: Duplex } {
  return (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection;
}
