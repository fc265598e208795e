/**
 * The migrations runner. Numbered SQL files beside this one are applied in order, all pending ones in one transaction
 * under an advisory transaction lock, so that several nodes may start at once. A file never changes after it was
 * applied anywhere: its checksum is recorded, and a difference is refused.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";

export interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

export type SchemaProblem = "changed" | "newer" | "behind";

/** One line for an operator; the schema and this program do not belong together. */
export class SchemaMismatch extends Error {
  readonly problem: SchemaProblem;

  constructor(problem: SchemaProblem, message: string) {
    super(message);
    this.name = "SchemaMismatch";
    this.problem = problem;
  }
}

export interface MigrationReport {
  readonly applied: readonly string[];
}

export interface SchemaOptions {
  readonly databaseUrl: string;
  /** Another set than the one that ships with this program. */
  readonly migrations?: readonly Migration[];
}

/** Any number; the same for every Fencepost, so that two runners on one database take turns. */
const MIGRATION_LOCK = "4711824603921";

const LEDGER = `
  CREATE SCHEMA IF NOT EXISTS fencepost;
  CREATE TABLE IF NOT EXISTS fencepost.migration (
    name text PRIMARY KEY,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
  )`;

/** Brings the schema up to this program. Safe to run at every start, by any number of nodes at once. */
export async function migrate(options: SchemaOptions): Promise<MigrationReport> {
  const migrations = options.migrations ?? (await shippedMigrations());
  return withClient(options.databaseUrl, async (client) => {
    const applied = await applyPending(client, migrations);
    if (applied.length > 0) await analyse(client);
    return { applied };
  });
}

/** Refuses a schema that this program does not know exactly; changes nothing. */
export async function checkSchema(options: SchemaOptions): Promise<void> {
  const migrations = options.migrations ?? (await shippedMigrations());
  await withClient(options.databaseUrl, async (client) => {
    const pending = pendingOf(migrations, await ledgerIfAny(client));
    const first = pending[0];
    if (first !== undefined) {
      throw new SchemaMismatch("behind", `the database lacks migration ${first.name}: run \`fencepost migrate\` first`);
    }
  });
}

export async function shippedMigrations(): Promise<readonly Migration[]> {
  const folder = new URL("./migrations/", import.meta.url);
  const names = (await readdir(fileURLToPath(folder))).filter((name) => name.endsWith(".sql")).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, folder), "utf8");
      return { name, sql, checksum: checksumOf(sql) };
    }),
  );
}

/** Line endings take no part: a checkout on another system is the same migration. */
export function checksumOf(sql: string): string {
  return createHash("sha256").update(sql.replaceAll("\r\n", "\n")).digest("hex");
}

async function applyPending(client: pg.Client, migrations: readonly Migration[]): Promise<readonly string[]> {
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    await client.query(LEDGER);
    const pending = pendingOf(migrations, await readLedger(client));
    for (const migration of pending) {
      await client.query(migration.sql);
      await client.query("INSERT INTO fencepost.migration (name, checksum) VALUES ($1, $2)", [
        migration.name,
        migration.checksum,
      ]);
    }
    await client.query("COMMIT");
    return pending.map((migration) => migration.name);
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

function pendingOf(migrations: readonly Migration[], ledger: ReadonlyMap<string, string>): readonly Migration[] {
  const known = new Set(migrations.map((migration) => migration.name));
  for (const name of ledger.keys()) {
    if (!known.has(name)) {
      throw new SchemaMismatch(
        "newer",
        `the database has migration ${name}, which this version does not know: upgrade`,
      );
    }
  }
  for (const migration of migrations) {
    const recorded = ledger.get(migration.name);
    if (recorded !== undefined && recorded !== migration.checksum) {
      throw new SchemaMismatch(
        "changed",
        `migration ${migration.name} is not the one that was applied: restore the file`,
      );
    }
  }
  return migrations.filter((migration) => !ledger.has(migration.name));
}

async function readLedger(client: pg.Client): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<{ name: string; checksum: string }>(
    "SELECT name, checksum FROM fencepost.migration ORDER BY name",
  );
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

async function ledgerIfAny(client: pg.Client): Promise<ReadonlyMap<string, string>> {
  const { rows } = await client.query<{ found: boolean }>(
    "SELECT to_regclass('fencepost.migration') IS NOT NULL AS found",
  );
  return rows[0]?.found === true ? readLedger(client) : new Map();
}

/** A table that was never analysed is planned as if it were tiny, and stays so in prepared plans. */
async function analyse(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'fencepost' ORDER BY 1",
  );
  await client.query(`ANALYZE ${rows.map((row) => row.name).join(", ")}`);
}

async function withClient<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "fencepost migrate" });
  // A client without a listener ends the process when its connection breaks; the query itself rejects anyway.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
