/**
 * Builds indexes of pending migrations on tables that are in use. Inside the migrations' transaction, building an index
 * would block every write to its table until COMMIT, and with it every lane. So indexes that a migration creates
 * CONCURRENTLY are built before that transaction, while nodes work; the transaction then finds them. After a crash, an
 * index may be invalid or complete. The next run drops an invalid index and keeps a complete one.
 */
import pg from "pg";

const CONCURRENT = /^CREATE INDEX CONCURRENTLY IF NOT EXISTS (\w+)\s+ON (fencepost\.\w+) [^;]+;/gm;

const stateOf = (name: string) => `
  SELECT i.indisvalid AS valid,
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_progress_create_index AS p WHERE p.index_relid = i.indexrelid)::int AS builders
  FROM pg_catalog.pg_index AS i WHERE i.indexrelid = pg_catalog.to_regclass('${name}')`;

const PAUSE = "SELECT pg_catalog.pg_sleep(0.2)";

/**
 * Error codes if two runners build the same index at the same time: one finds that it exists, or both wait for each
 * other.
 */
const LOST_RACE = new Set(["42P07", "23505", "40P01"]);

const NO_SUCH_COLUMN = "42703";

/** Removes CONCURRENTLY from the SQL, because it is not allowed in a transaction, and not needed there. */
export function inTransaction(sql: string): string {
  return sql.replaceAll("CREATE INDEX CONCURRENTLY IF NOT EXISTS", "CREATE INDEX IF NOT EXISTS");
}

/** Builds the indexes that these migrations create on existing tables. No transaction may be open. */
export async function buildIndexes(client: pg.Client, pending: readonly { readonly sql: string }[]): Promise<void> {
  for (const { sql } of pending) {
    for (const [create, name, table] of sql.matchAll(CONCURRENT)) {
      const { rows } = await client.query(`SELECT pg_catalog.to_regclass('${table}') IS NOT NULL AS found`);
      if (rows[0]?.found === true) await build(client, create, `fencepost.${name}`);
    }
  }
}

async function build(client: pg.Client, sql: string, name: string) {
  for (;;) {
    const { rows } = await client.query<{ valid: boolean; builders: number }>(stateOf(name));
    const [found] = rows;
    if (found?.valid === true) return;
    if (found === undefined) {
      if (!(await create(client, sql))) return;
    } else if (found.builders > 0) {
      await client.query(PAUSE);
    } else {
      await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${name}`).catch(passLostRace);
    }
  }
}

/**
 * Builds one index. False if one of its columns is added by an earlier migration of the same run, so that the
 * transaction must build the index.
 */
async function create(client: pg.Client, sql: string) {
  try {
    await client.query(sql);
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === NO_SUCH_COLUMN) return false;
    passLostRace(error);
  }
  return true;
}

function passLostRace(error: unknown) {
  if (!(error instanceof pg.DatabaseError) || !LOST_RACE.has(error.code ?? "")) throw error;
}
