/** PgBouncer in front of the database, in transaction mode, where an operator may have one. */
import { spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import type { Clock } from "../../../ports/clock.ts";
import { freePort, LOOPBACK } from "../embedded/loopback-port.ts";

/** User id of Debian's `nobody`: PgBouncer refuses to run as root. */
const NOBODY = 65_534;
const POLL_MS = 50;

export interface Pooler {
  /** The URL of the same database behind the pooler. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the program `pgbouncer` with fewer connections to the database than it accepts from clients. */
export async function startPooler(
  clock: Clock,
  { program, databaseUrl, poolSize = 10 }: { program: string; databaseUrl: string; poolSize?: number },
): Promise<Pooler> {
  const directory = await mkdtemp(join(tmpdir(), "fencepost-pooler-"));
  await chmod(directory, 0o755);
  const port = await freePort();
  const file = join(directory, "pgbouncer.ini");
  await writeFile(file, configuration(new URL(databaseUrl), { port, poolSize }), { mode: 0o644 });
  const account = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const child = spawn(program, [file], { ...account, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (chunk) => {
    log += chunk;
  });
  let isOver = false;
  const exited = new Promise<void>((resolve) =>
    child
      .on("error", (error) => {
        log += error.message;
      })
      .on("close", () => {
        isOver = true;
        resolve();
      }),
  );
  const url = new URL(databaseUrl);
  url.host = `${LOOPBACK}:${port}`;
  while (!(await answers(url.href))) {
    if (isOver) throw new Error(`pgbouncer ended: ${log}`);
    await clock.sleep(POLL_MS);
  }
  return {
    url: url.href,
    stop: async () => {
      child.kill("SIGKILL");
      await exited;
      await rm(directory, { recursive: true });
    },
  };
}

function configuration(url: URL, { port, poolSize }: { port: number; poolSize: number }): string {
  const name = url.pathname.slice(1);
  const password = url.password === "" ? "" : ` password=${decodeURIComponent(url.password)}`;
  return `[databases]
${name} = host=${url.hostname} port=${url.port} dbname=${name} user=${decodeURIComponent(url.username)}${password}
[pgbouncer]
listen_addr = ${LOOPBACK}
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
