/**
 * The migrations runner. Numbered SQL files are applied in order, all pending ones in one transaction under an advisory
 * transaction lock, so that several nodes may start at once. Indexes on tables in use are built before that transaction
 * (build-indexes.ts). A file never changes after it was applied anywhere: its checksum is recorded, and a difference is
 * refused. The baseline of a release replaces all files before it: a database that has exactly those files records the
 * baseline without running it, and an older database is refused.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { DEFAULT_SCHEMA, speakingIn } from "../rows/schema-name.ts";
import { type Applied, leftBehind, type RunningNode, suits, tooNew, worksWithOf } from "../rows/schema-skew.ts";
import { BEGIN, PINNED_PATH } from "../session/opening.ts";
import { markRestored } from "./after-restore.ts";
import { buildIndexes, inTransaction } from "./build-indexes.ts";

export interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

export type SchemaProblem = "changed" | "newer" | "older" | "inUse" | "noRole" | "badName";

/** The schema and this program do not fit together. The message is one line for an operator. */
export class SchemaMismatch extends Error {
  readonly problem: SchemaProblem;

  constructor(problem: SchemaProblem, message: string) {
    super(message);
    this.name = "SchemaMismatch";
    this.problem = problem;
  }
}

export interface SchemaOptions {
  readonly databaseUrl: string;
  /** Name of the schema; default: `fencepost`. */
  readonly schema?: string;
  /** Role that nodes run as and that may not change tables: it is granted the rights that nodes need. */
  readonly grant?: string;
  /** True if the database was restored from a backup: then every lane waits for an operator. */
  readonly afterRestore?: boolean;
  /** Migrations to use instead of those that ship with this program. */
  readonly migrations?: readonly Migration[];
}

/**
 * Limits the wait for a table's lock. While a migration waits, every running node queues behind it, heartbeats
 * included. So if another transaction such as a backup holds the table, the wait is short, and all locks are released
 * before the next attempt.
 */
const LIMIT_WAITS = "SET LOCAL lock_timeout TO '500ms'";
/** Qualify function names outside a transaction: the search path is not pinned there, and a pooler would keep a SET. */
const PAUSE = "SELECT pg_catalog.pg_sleep(1)";
const MOST_WAITS = 40;
/**
 * Error codes after which the migration is tried again: a lock was not available in time, or the server chose this
 * transaction to break a deadlock.
 */
const LET_OTHERS_PASS = new Set(["55P03", "40P01"]);
/**
 * Tables that are locked before the first migration file, in the lock order of nodes: lanes first. Otherwise a file
 * that locks `transaction` before `lane` would hold a lock that every writer needs, and wait for one that every writer
 * holds.
 */
const WRITERS_ORDER = ["fencepost.lane", "fencepost.transaction"] as const;
type OurTable = (typeof WRITERS_ORDER)[number] | "fencepost.migration" | "fencepost.node_instance";
/**
 * Timeout for connecting. Without it, a host that drops packets would delay the program for minutes, until the
 * operating system gives up.
 */
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Key of the advisory lock under which migrations run, the same for every Fencepost, so that two runners on one
 * database take turns. The number is arbitrary.
 */
const MIGRATION_LOCK = "4711824603921";

const LEDGER = `
  CREATE SCHEMA IF NOT EXISTS fencepost;
  CREATE TABLE IF NOT EXISTS fencepost.migration (
    name text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    works_with text
  );
  ALTER TABLE fencepost.migration ADD COLUMN IF NOT EXISTS works_with text`;

/**
 * SQL: blocks registrations, so that no node starts between the check for running nodes and COMMIT. A node that
 * registers waits, and then sees the migrated schema.
 */
const LOCK_REGISTRATION = "SELECT pg_advisory_xact_lock(hashtextextended('fencepost registration', 0))";

const RUNNING = `
  SELECT node_id, version, knows FROM (
    SELECT n.node_id, n.version, to_jsonb(n) ->> 'knows_migration' AS knows FROM fencepost.node_instance AS n
    WHERE NOT n.dead AND n.expires_at > clock_timestamp()
  ) AS running WHERE knows IS NOT NULL ORDER BY knows, node_id`;

/** Migrates the schema to this program's version. Safe to run at every start, by any number of nodes at once. */
export async function migrate(options: SchemaOptions): Promise<{ readonly applied: readonly string[] }> {
  const migrations = options.migrations ?? (await shippedMigrations());
  return withClient(options, async (client) => {
    const schema = options.schema ?? DEFAULT_SCHEMA;
    await refuseUnquotable(client, schema);
    const applied = await applyPatiently(client, migrations);
    if (applied.length > 0) await analyse(client);
    if (options.afterRestore === true) await markRestored(client);
    if (options.grant !== undefined) await grantTo(client, schema, options.grant);
    return { applied };
  });
}

export interface SchemaState {
  /** Number of migrations that the database has; 0 if there is no schema yet. */
  readonly applied: number;
  /** Names of the migrations that `migrate` would apply. */
  readonly pending: readonly string[];
  /** Reason why `migrate` would fail; null if it would succeed. */
  readonly problem: string | null;
}

/** Reports what `migrate` would do, without doing it. */
export async function schemaState(options: SchemaOptions): Promise<SchemaState> {
  const migrations = options.migrations ?? (await shippedMigrations());
  return withClient(options, async (client) => {
    const ledger = await ledgerIfAny(client);
    try {
      const pending = pendingOf(migrations, ledger).map(({ name }) => name);
      return { applied: ledger.size, pending, problem: null };
    } catch (error) {
      if (!(error instanceof SchemaMismatch)) throw error;
      return { applied: ledger.size, pending: [], problem: error.message };
    }
  });
}

const FOLDER = new URL("../migrations/", import.meta.url);

async function shippedNames(): Promise<readonly string[]> {
  return (await readdir(fileURLToPath(FOLDER))).filter((name) => name.endsWith(".sql")).sort();
}

/** Name of the newest migration that this program has. */
export async function newestMigration(): Promise<string> {
  return (await shippedNames()).at(-1) as string;
}

export async function shippedMigrations(): Promise<readonly Migration[]> {
  return Promise.all(
    (await shippedNames()).map(async (name) => {
      const sql = await readFile(new URL(name, FOLDER), "utf8");
      return { name, sql, checksum: checksumOf(sql) };
    }),
  );
}

/** Checksum of a migration. Line endings are ignored: a checkout on another system is the same migration. */
export function checksumOf(sql: string): string {
  return createHash("sha256").update(sql.replaceAll("\r\n", "\n")).digest("hex");
}

async function applyPatiently(client: pg.Client, migrations: readonly Migration[]): Promise<readonly string[]> {
  for (let waits = 1; ; waits++) {
    try {
      return await applyPending(client, migrations);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || !LET_OTHERS_PASS.has(error.code ?? "")) throw error;
      if (waits >= MOST_WAITS)
        throw new SchemaMismatch("inUse", `another database session blocks the migrations: ${error.message}`);
      await client.query(PAUSE);
    }
  }
}

async function applyPending(client: pg.Client, migrations: readonly Migration[]): Promise<readonly string[]> {
  await buildIndexes(client, pendingOf(migrations, await ledgerIfAny(client)));
  await client.query(`${BEGIN}; SET LOCAL ${PINNED_PATH}`);
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    const pending = pendingOf(migrations, await ledgerIfAny(client));
    if (pending.length > 0) {
      await refuseWhileInUse(client, pending);
      await client.query(LIMIT_WAITS);
      await client.query(LEDGER);
      await keepWritersOut(client);
    }
    for (const migration of pending) {
      if (!migration.adopted) await client.query(inTransaction(migration.sql));
      await record(client, migration);
    }
    await client.query("COMMIT");
    return pending.map((migration) => migration.name);
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

async function keepWritersOut(client: pg.Client) {
  for (const table of WRITERS_ORDER) {
    if (await exists(client, table)) await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  }
}

async function record(client: pg.Client, { name, sql, checksum }: Migration) {
  await client.query("INSERT INTO fencepost.migration (name, checksum, works_with) VALUES ($1, $2, $3)", [
    name,
    checksum,
    worksWithOf(sql),
  ]);
}

/**
 * Throws if a running node is too old for the pending migrations. A node may keep running while the schema is migrated,
 * but only if the new schema is at most one release ahead of it.
 */
async function refuseWhileInUse(client: pg.Client, pending: readonly Migration[]) {
  if (!(await exists(client, "fencepost.node_instance"))) return;
  await client.query(LOCK_REGISTRATION);
  const { rows } = await client.query<{ node_id: string; version: string; knows: string }>(RUNNING);
  const running = rows.map(({ node_id, version, knows }): RunningNode => ({ nodeId: node_id, version, knows }));
  const steps = pending.map(({ name, sql }): Applied => ({ name, worksWith: worksWithOf(sql) }));
  const problem = leftBehind(steps, running);
  if (problem !== null) throw new SchemaMismatch("inUse", problem);
}

type LedgerEntry = Applied & Pick<Migration, "checksum">;
type Ledger = ReadonlyMap<string, LedgerEntry>;

/** A migration to apply. `adopted`: recorded but not run, because the database has the migrations it replaces. */
type Pending = Migration & { readonly adopted: boolean };

function pendingOf(migrations: readonly Migration[], ledger: Ledger): readonly Pending[] {
  const replaced = replacedBy(migrations, ledger);
  const pending = migrations
    .filter(({ name }) => !ledger.has(name))
    .map((migration) => ({ ...migration, adopted: replaced.size > 0 && STANDS_FOR.test(migration.sql) }));
  refuseChanged(migrations, ledger);
  refuseNewer(migrations, pending, new Map([...ledger].filter(([name]) => !replaced.has(name))));
  return pending;
}

/**
 * Matches a baseline's second line: the last migration that it replaces, and a digest of the names and checksums of all
 * replaced ones.
 */
const STANDS_FOR = /^-- stands for: (\d{4}_\w+\.sql) ([0-9a-f]{64})$/m;

/** Migrations in the table of applied migrations that a baseline replaces: either all of them or none. */
function replacedBy(migrations: readonly Migration[], ledger: Ledger): ReadonlySet<string> {
  const baseline = migrations.find(({ sql }) => STANDS_FOR.test(sql));
  const [, last = "", digest] = STANDS_FOR.exec(baseline?.sql ?? "") ?? [];
  const found = [...ledger.values()].filter(({ name }) => name <= last);
  const names = found.map(({ name }) => name);
  const list = found.map(({ name, checksum }) => `${name} ${checksum}`).join("\n");
  if (found.length > 0 && checksumOf(list) !== digest) {
    throw new SchemaMismatch(
      "older",
      `the database was created by a version before the first release, and its newest migration is ${names.at(-1)}: migrate it to ${last} with the version that ships that file, or start with an empty schema`,
    );
  }
  return new Set(names);
}

/** Refuses unknown migrations, unless all follow the known ones and declare that they work with this program. */
function refuseNewer(migrations: readonly Migration[], pending: readonly Migration[], ledger: Ledger) {
  const known = new Set(migrations.map(({ name }) => name));
  const newest = migrations.at(-1)?.name ?? "";
  for (const entry of ledger.values()) {
    if (known.has(entry.name)) continue;
    if (entry.name < newest || pending.length > 0) {
      throw new SchemaMismatch(
        "newer",
        `the database has migration ${entry.name}, which this version does not have: upgrade Fencepost`,
      );
    }
    if (!suits(entry, newest)) throw new SchemaMismatch("newer", tooNew(entry, newest));
  }
}

function refuseChanged(migrations: readonly Migration[], ledger: Ledger) {
  for (const { name, checksum } of migrations) {
    const recorded = ledger.get(name)?.checksum;
    if (recorded !== undefined && recorded !== checksum) {
      throw new SchemaMismatch("changed", `migration ${name} was changed after it was applied: restore the file`);
    }
  }
}

/** Reads the table of applied migrations. An old table has no column `works_with`, so each row is read as JSON. */
async function ledgerIfAny(client: pg.Client): Promise<Ledger> {
  if (!(await exists(client, "fencepost.migration"))) return new Map();
  const { rows } = await client.query<LedgerEntry>(
    `SELECT m.name, m.checksum, pg_catalog.to_jsonb(m) ->> 'works_with' AS "worksWith" FROM fencepost.migration AS m ORDER BY m.name`,
  );
  return new Map(rows.map((row) => [row.name, row]));
}

/**
 * SQL: whether a table exists, read from the catalog, which shows what was committed when the statement began.
 * `to_regclass` uses a cache that a session refreshes only when it locks a table, so it may miss a table that another
 * runner has just committed.
 */
const existing = (table: string) => `
  SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE pg_catalog.format('%s.%s', n.nspname, c.relname) OPERATOR(pg_catalog.=) '${table}'`;

async function exists(client: pg.Client, table: OurTable) {
  const { rowCount } = await client.query(existing(table));
  return rowCount !== 0;
}

/** Analyses the tables: a table that was never analysed is planned as if it were tiny, even later in prepared plans. */
async function analyse(client: pg.Client) {
  const { rows } = await client.query<{ name: string }>(
    "SELECT pg_catalog.format('%I.%I', schemaname, tablename) AS name FROM pg_catalog.pg_tables WHERE schemaname = 'fencepost' ORDER BY 1",
  );
  await client.query(`ANALYZE ${rows.map((row) => row.name).join(", ")}`);
}

/**
 * Grants the rights that a node needs to run, and none to change tables. They include tables of later migrations if the
 * same role applies them. All in one transaction: with half of the rights, a node would start and fail later.
 */
async function grantTo(client: pg.Client, schema: string, role: string) {
  const { rowCount } = await client.query("SELECT FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) $1", [
    role,
  ]);
  if (rowCount === 0)
    throw new SchemaMismatch("noRole", `the database role ${role} for the grants does not exist: create it first`);
  const to = `TO ${client.escapeIdentifier(role)}`;
  const ours = `IN SCHEMA ${schema}`;
  const later = `ALTER DEFAULT PRIVILEGES ${ours} GRANT`;
  const text = `
    BEGIN;
    GRANT USAGE ON SCHEMA ${schema} ${to};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES ${ours} ${to};
    GRANT USAGE ON ALL SEQUENCES ${ours} ${to};
    GRANT EXECUTE ON ALL FUNCTIONS ${ours} ${to};
    ${later} SELECT, INSERT, UPDATE, DELETE ON TABLES ${to};
    ${later} USAGE ON SEQUENCES ${to};
    ${later} EXECUTE ON FUNCTIONS ${to};
    COMMIT`;
  // Pass the query as an object, because in a string every `fencepost` would be replaced by the schema's name, and the
  // role may have that name too.
  await client.query({ text });
}

/** Removes everything that Fencepost stores in this database. For `dev`, whose chain starts anew each time. */
export async function dropSchema(options: Pick<SchemaOptions, "databaseUrl" | "schema">): Promise<number> {
  return withClient(options, async (client) => {
    const isThere = "SELECT to_regclass('fencepost.transaction') IS NOT NULL AS there";
    const { rows } = await client.query<{ there: boolean }>(isThere);
    const counted = "SELECT count(*)::int AS transactions FROM fencepost.transaction";
    const before = rows[0]?.there === true ? await client.query<{ transactions: number }>(counted) : null;
    await client.query("DROP SCHEMA IF EXISTS fencepost CASCADE");
    return before?.rows[0]?.transactions ?? 0;
  });
}

/** Refuses schema names that need quotes: statements use them unquoted, and a keyword like `user` is misread. */
async function refuseUnquotable(client: pg.Client, schema: string) {
  const asked = "SELECT pg_catalog.quote_ident($1) OPERATOR(pg_catalog.=) $1 AS plain";
  const { rows } = await client.query<{ plain: boolean }>(asked, [schema]);
  if (rows[0]?.plain !== true)
    throw new SchemaMismatch("badName", `schema ${schema} needs quotes: choose another name`);
}

export async function withClient<T>(
  { databaseUrl, schema = DEFAULT_SCHEMA }: Pick<SchemaOptions, "databaseUrl" | "schema">,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: "fencepost migrate",
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  // Listen for errors of the connection: without a listener, a broken connection would end the process. The query
  // itself rejects anyway.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await work(speakingIn(client, schema));
  } finally {
    await client.end();
  }
}
