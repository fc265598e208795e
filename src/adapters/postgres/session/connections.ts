/**
 * Connections and what is sent over them. Statements are pipelined: everything that is sent before the first `await`
 * leaves in one write and costs one round trip.
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
  /** Named statements are parsed and planned once per connection; a transaction pooler before 1.21 cannot keep them. */
  readonly preparedStatements: boolean;
  /** The server ends a transaction that takes too long, also while it waits for its client (PostgreSQL 17). */
  readonly hasTransactionTimeout: boolean;
  readonly schema: string;
}

export interface ConnectionOptions extends SessionOptions {
  readonly databaseUrl: string;
  readonly clock: Clock;
  readonly max: number;
  /** How long to wait for a connection, and the most that one use of it may take. */
  readonly deadlineMs: number;
}

/** The rows of each command. */
export type Answers<Commands extends readonly Command[]> = {
  readonly [Place in keyof Commands]: Commands[Place] extends Command<infer Row> ? readonly Row[] : never;
};

const BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

const INT8 = 20;
const NUMERIC = 1700;

/** int8 fits a number (nonces, blocks, counters are kept below 2^53); numeric is wei or a WAL position. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format: "text" | "binary") => {
    if (oid === INT8) return Number;
    if (oid === NUMERIC) return BigInt;
    return pg.types.getTypeParser(oid, format);
  }) as typeof pg.types.getTypeParser,
};

/** Why a connection ended while no statement was open on it. */
const endings = new WeakMap<pg.ClientBase, Error>();

/** How long a connection that was given back is kept at hand before the pool has it. */
const AT_HAND_MS = 1_000;

/** A timer that is this late indicates a stall of this process, not of the database. */
const NOT_SCHEDULED_MS = 250;

/** Statements under way when the store closes may finish within this; then they reject. */
const LAST_ANSWERS_MS = 500;

/**
 * A few connections that are opened when needed and replaced when broken. One that was just given back stays at hand:
 * the pool would hand it out a turn of the event loop later, behind all the work that the last answer set off.
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
    // Any number may wait for a connection: Node's warning of a leak would be wrong.
    setMaxListeners(0, this.cutOff.signal);
    // Without listeners a broken connection would end the process. The statement that runs on it rejects by itself.
    this.pool.on("error", () => undefined);
    this.pool.on("connect", (client) => client.on("error", (error) => endings.set(client, error)));
  }

  /**
   * Runs `work` on a connection of its own. One that fails in an unexpected way, or is still busy at the deadline, is
   * destroyed: the server must see it end.
   */
  async use<T>(work: (session: Session) => Promise<T>, deadlineMs = this.options.deadlineMs): Promise<T> {
    const client = this.takeAtHand() ?? (await this.connect());
    const session = new Session(client, this.options);
    const { clock } = this.options;
    // Only when everything that has arrived was read: a process that was not scheduled finds the deadline past and the
    // answer in its socket, and its timers run first.
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
      // The driver's timer runs before its sockets are read: if it came too late, the server may have answered in time.
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
      const cut = () => reject(new Error("the store was closed"));
      signal.addEventListener("abort", cut, { once: true });
      this.pool
        .connect()
        .then((client) => (signal.aborted ? client.release(true) : resolve(client)), reject)
        .finally(() => signal.removeEventListener("abort", cut));
    });
  }

  /** Callers that wait at the pool come first. The pool gets the connection soon anyway: it notices when one breaks. */
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

  /** Statements that see one moment of the database, in one round trip. */
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

  /** True if there is a pooler between us and the server. */
  async arePooled(): Promise<boolean> {
    return this.use(async (session) => (await session.run(readBackend()))[0]?.pid !== session.processId);
  }

  /** Nothing is begun any more. */
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

/** Reads with one statement alone. */
export async function ask<Row>(reading: Reading, command: Command<Row>): Promise<readonly Row[]> {
  const [rows] = await reading.read(command);
  return rows;
}

/** A pipelined write, and why it fails. */
interface Gathering {
  readonly steps: Step[];
  unwritable: { readonly error: unknown } | null;
}

export class Session {
  private readonly client: pg.PoolClient;
  private readonly options: SessionOptions;
  private gathering: Gathering | null = null;
  /** This process ended the session, because it took too long. */
  reachedDeadline = false;
  private confused = false;

  constructor(client: pg.PoolClient, options: SessionOptions) {
    this.client = client;
    this.options = options;
  }

  /** False if the connection is gone or was left inside a transaction. */
  get reusable(): boolean {
    return !this.reachedDeadline && !this.confused && !this.isInTransaction;
  }

  get isInTransaction(): boolean {
    return this.client.getTransactionStatus() !== "I";
  }

  /** Why the connection ended between two statements; null: it did not, as far as known. */
  get endedBy(): Error | null {
    return endings.get(this.client) ?? null;
  }

  /** The backend's process id as the server, or a pooler before it, gave it when the connection began. */
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

  /** Names of functions and types mean PostgreSQL's own from here to the end of the transaction. */
  begin(how: string): Promise<unknown> {
    return Promise.all([this.control(how), this.control(`SET LOCAL ${PINNED_PATH}`)]);
  }

  /** BEGIN, COMMIT, ROLLBACK; resolves with the tag of what the server did. */
  async control(sql: string): Promise<string> {
    return (await this.step({ name: null, sql }, [])).tag;
  }

  /**
   * Sends all statements of `write` in one write to the socket.
   *
   * A statement without a Sync behind it is answered later and cheaper. But until the Sync arrives, only
   * `transaction_timeout` ends a transaction whose bytes have stopped coming. So before 17 each statement has its own
   * Sync. COMMIT always has one: a session that holds the feed's counter and receives no more then waits behind a Sync,
   * and the shorter limits count.
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

  /** If one of them cannot be written, none leaves: the last may be COMMIT. */
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

  /** The server may or may not carry on with what it was sent; every statement still open here rejects. */
  destroy(): void {
    this.reachedDeadline = true;
    wireOf(this.client).stream.destroy();
  }
}

/** The driver keeps it in a field that its types do not show. */
export function processIdOf(client: pg.ClientBase): number | null {
  return (client as unknown as { readonly processID: number | null }).processID;
}

/** The driver keeps its socket in a field that its types do not show. */
export function wireOf(client: pg.ClientBase): { readonly stream: Duplex } {
  return (client as unknown as { readonly connection: { readonly stream: Duplex } }).connection;
}
