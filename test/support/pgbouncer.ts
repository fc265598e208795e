import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { freePort } from "../../src/main/dev/embedded/loopback-port.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";
import { waitUntil } from "./wait-until.ts";

const CANDIDATES = [
  "/usr/sbin/pgbouncer",
  "/usr/bin/pgbouncer",
  "/usr/local/bin/pgbouncer",
  "/opt/homebrew/bin/pgbouncer",
];

/** Path of an installed PgBouncer; undefined if there is none. */
export const pgbouncerPath = CANDIDATES.find((path) => existsSync(path));

export const NO_PGBOUNCER = "no pgbouncer is installed: what happens behind a transaction pooler stays untested";

export interface PgBouncer {
  /** The URL of the same database behind the pooler. */
  readonly url: string;
  stop(): Promise<void>;
}

/** User id of Debian's `nobody`: PgBouncer refuses to run as root. */
const NOBODY = 65_534;

/** Starts a pooler in transaction mode in front of one database, with fewer server connections than clients. */
export async function startPgBouncer(databaseUrl: string, poolSize = 10): Promise<PgBouncer> {
  if (pgbouncerPath === undefined) throw new Error(NO_PGBOUNCER);
  const directory = await makeTemporaryDirectory();
  await chmod(directory.path, 0o755);
  const port = await freePort();
  const config = join(directory.path, "pgbouncer.ini");
  await writeFile(config, configuration(new URL(databaseUrl), { port, poolSize }), { mode: 0o644 });
  const account = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const child = spawn(pgbouncerPath, [config], { ...account, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (chunk) => {
    log += chunk;
  });
  const exited = new Promise<void>((resolve) => child.on("close", () => resolve()));
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${port}`;
  await waitUntil(() => {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended: ${log}`);
    return answers(url.href);
  }, "the pooler answers");
  return {
    url: url.href,
    stop: async () => {
      child.kill("SIGKILL");
      await exited;
      await directory.remove();
    },
  };
}

function configuration(url: URL, { port, poolSize }: { port: number; poolSize: number }): string {
  const name = url.pathname.slice(1);
  const password = url.password === "" ? "" : ` password=${decodeURIComponent(url.password)}`;
  return `[databases]
${name} = host=${url.hostname} port=${url.port} dbname=${name} user=${decodeURIComponent(url.username)}${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
`;
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
