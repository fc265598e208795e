import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { migrate } from "../../adapters/postgres/schema/migrate.ts";
import { systemClock } from "../../adapters/system/clock.ts";
import { codeOf } from "../../domain/text/thrown.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../dev/embedded/postgres.ts";

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

interface Server {
  /** URL of the superuser, on a database that is never cloned. */
  readonly adminUrl: string;
  /** A migrated template without connections; null: the node migrates each database when it starts. */
  readonly template: string | null;
}

/** One server for all stacks of this process: the first stack waits for it, later ones clone a database. */
let shared: Promise<Server> | null = null;

/** Creates an empty database with the current schema, on the given server or on this process's own. */
export async function createTestDatabase(serverUrl: string | undefined): Promise<TestDatabase> {
  if (serverUrl === undefined) {
    shared ??= startShared();
    shared.catch(() => {
      shared = null;
    });
  }
  const { adminUrl, template } = (await (serverUrl === undefined
    ? shared
    : { adminUrl: serverUrl, template: null })) as Server;
  const name = `fencepost_testing_${randomBytes(8).toString("hex")}`;
  await asAdmin(adminUrl, `CREATE DATABASE ${name}${template === null ? "" : ` TEMPLATE ${template}`}`);
  return { url: onDatabase(adminUrl, name), drop: () => asAdmin(adminUrl, `DROP DATABASE ${name} WITH (FORCE)`) };
}

/** Without fsync: after a power cut the test is run again. */
const SETTINGS = { fsync: "off", full_page_writes: "off", max_connections: "400" };

/** With the host name: containers may share a directory, and have overlapping pids. */
const PREFIX = `fencepost-testing-${hostname().replaceAll(/[^\w.]/g, "_")}-`;

async function startShared(): Promise<Server> {
  await sweep();
  const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  // Open to every account: under root, the server runs as another one.
  await chmod(directory, 0o755);
  const postgres = await startEmbeddedPostgres({
    directory,
    clock: systemClock,
    log: () => undefined,
    settings: SETTINGS,
    keepsProcess: false,
  });
  removeWhenGone(postgres, directory);
  const template = "fencepost_template";
  await asAdmin(postgres.url, `CREATE DATABASE ${template}`);
  await migrate({ databaseUrl: onDatabase(postgres.url, template) });
  await asAdmin(postgres.url, `ALTER DATABASE ${template} ALLOW_CONNECTIONS false`);
  return { adminUrl: postgres.url, template };
}

/**
 * Test runners may kill their workers. A shell waits on a pipe whose other end only this process holds, then for the
 * end of the server, and removes the files.
 */
const REMOVE =
  'read -r _; n=0; while kill -0 "$1" 2>/dev/null && [ $n -lt 300 ]; do sleep 0.1; n=$((n+1)); done; rm -rf -- "$2" "$3"';

function removeWhenGone({ pid, home }: EmbeddedPostgres, directory: string): void {
  const remover = spawn("/bin/sh", ["-c", REMOVE, "remover", String(pid), directory, home], {
    detached: true,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  // Without a shell, the next run removes the files.
  remover.on("error", () => undefined);
  remover.unref();
  if (remover.stdin instanceof Socket) remover.stdin.unref();
}

/** Removes the directories of ended processes, as after a power cut. */
async function sweep(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(PREFIX));
  for (const name of names) {
    const pid = Number.parseInt(name.slice(PREFIX.length), 10);
    if (!isAlive(pid)) await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => undefined);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

function onDatabase(adminUrl: string, name: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function asAdmin(adminUrl: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: adminUrl });
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
