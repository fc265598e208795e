import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { migrate } from "../../adapters/postgres/schema/migrate.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { startEmbeddedPostgres } from "../dev/embedded/postgres.ts";
import { findProcess, whenThisEnds } from "../dev/embedded/processes.ts";

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/**
 * One PostgreSQL server for all stacks of this process: the first stack waits for its start, later ones only clone a
 * database.
 */
let shared: ReturnType<typeof startShared> | null = null;

/** Creates an empty database with the current schema, on the given server or on the server of this process. */
export async function createTestDatabase(serverUrl: string | undefined): Promise<TestDatabase> {
  const { adminUrl, template } =
    serverUrl === undefined ? await sharedServer() : { adminUrl: serverUrl, template: null };
  // A server that the user names has no template database: there, the node creates the schema when it starts.
  const name = `fencepost_testing_${randomBytes(8).toString("hex")}`;
  await asAdmin(adminUrl, `CREATE DATABASE ${name}${template === null ? "" : ` TEMPLATE ${template}`}`);
  return { url: onDatabase(adminUrl, name), drop: () => asAdmin(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`) };
}

function sharedServer() {
  shared ??= startShared().catch((error: unknown) => {
    shared = null;
    throw error;
  });
  return shared;
}

/** Server parameters that disable fsync: nothing is lost, because after a power cut the test is run again. */
const SETTINGS = { fsync: "off", full_page_writes: "off", max_connections: "400" };

/**
 * Prefix of the temporary directories. It includes the host name: containers may share a directory, and have
 * overlapping pids.
 */
const PREFIX = `fencepost-testing-${hostname().replaceAll(/[^\w.]/g, "_")}-`;

async function startShared() {
  await sweep();
  const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  // Make the directory accessible to every account: under root, the server runs as another one.
  await chmod(directory, 0o755);
  const postgres = await startEmbeddedPostgres({
    directory,
    clock: systemClock,
    log: () => undefined,
    settings: SETTINGS,
    keepsProcess: false,
  });
  // On a system without a shell, the next test run removes the files instead.
  whenThisEnds(REMOVE, String(postgres.pid), directory, postgres.home);
  const template = "fencepost_template";
  await asAdmin(postgres.url, `CREATE DATABASE ${template}`);
  await migrate({ databaseUrl: onDatabase(postgres.url, template) });
  await asAdmin(postgres.url, `ALTER DATABASE ${template} ALLOW_CONNECTIONS false`);
  /** `adminUrl`: URL of the superuser, on a database that is never cloned. */
  return { adminUrl: postgres.url, template };
}

/**
 * Shell script that waits for the end of the server, then removes the files. Needed because test runners may kill their
 * workers.
 */
const REMOVE =
  'n=0; while kill -0 "$1" 2>/dev/null && [ $n -lt 300 ]; do sleep 0.1; n=$((n+1)); done; rm -rf -- "$2" "$3"';

/** Removes the directories of processes that have ended without clean-up, as after a power cut. */
async function sweep() {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(PREFIX));
  for (const name of names) {
    const pid = Number.parseInt(name.slice(PREFIX.length), 10);
    if ((await findProcess(pid)) === null)
      await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => undefined);
  }
}

function onDatabase(adminUrl: string, name: string) {
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function asAdmin(adminUrl: string, statement: string) {
  const client = new Client({ connectionString: adminUrl });
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
