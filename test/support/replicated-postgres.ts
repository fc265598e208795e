import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";
import { signalStandby } from "./own-postgres.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";
import { waitUntil } from "./wait-until.ts";

/** A primary with a streaming standby, behind an address that leads to the current primary. */
export interface ReplicatedPostgres {
  readonly url: string;
  /** Cuts the standby off: a failover loses what is committed from now on. */
  partStandby(): Promise<void>;
  /** Kills the primary, promotes the standby, and makes the address lead there. */
  failOver(): Promise<void>;
  remove(): Promise<void>;
}

const STANDBY = "standby";

export async function startReplicatedPostgres({ synchronous }: { synchronous: boolean }): Promise<ReplicatedPostgres> {
  const directories = [await makeTemporaryDirectory(), await makeTemporaryDirectory()] as const;
  const [home, standbyHome] = await copyCluster(directories[0].path, directories[1].path);
  const primary = await start(directories[0].path);
  const stream = await TcpProxy.start(primary.port);
  const standby = await start(directories[1].path, { primary_conninfo: conninfo(stream.through(primary.url)) });
  const address = await TcpProxy.start(primary.port);
  await waitUntil(() => isStreaming(primary.url), "the standby follows");
  if (synchronous) {
    await ask(primary.url, `ALTER SYSTEM SET synchronous_standby_names = '${STANDBY}'`);
    await ask(primary.url, "SELECT pg_reload_conf()");
    await waitUntil(async () => (await ask(primary.url, "SHOW synchronous_standby_names")).length > 0, "it is awaited");
  }
  return {
    url: address.through(primary.url),
    partStandby: async () => {
      stream.refuse();
      stream.cut();
      await waitUntil(async () => !(await isStreaming(primary.url)), "the primary knows");
    },
    failOver: async () => {
      address.refuse();
      process.kill(primary.pid, "SIGQUIT");
      address.cut();
      await ask(standby.url, "SELECT pg_promote()");
      address.upstreamPort = standby.port;
      address.admit();
    },
    remove: async () => {
      await Promise.all([address.close(), stream.close()]);
      await Promise.all([primary.stop(), standby.stop()]);
      for (const directory of directories) await directory.remove();
      for (const path of [home, standbyHome]) await rm(path, { recursive: true, force: true });
    },
  };
}

function start(directory: string, settings: Readonly<Record<string, string>> = {}): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ directory, clock: systemClock, log: () => undefined, settings });
}

/** Copies the data directory of a stopped server, because the npm package has no pg_basebackup. */
async function copyCluster(from: string, to: string): Promise<readonly [string, string]> {
  const homes: string[] = [];
  for (const directory of [from, to]) {
    const server = await start(directory);
    homes.push(server.home);
    await server.stop();
  }
  const [source, target] = homes.map((home) => join(home, "postgres")) as [string, string];
  await rm(target, { recursive: true });
  await promisify(execFile)("cp", ["-a", source, target]);
  await signalStandby(join(target, "data"));
  return homes as [string, string];
}

function conninfo(url: string): string {
  const { hostname, port, username, password } = new URL(url);
  return `host=${hostname} port=${port} user=${username} password=${password} application_name=${STANDBY}`;
}

async function isStreaming(url: string): Promise<boolean> {
  const rows = await ask(url, `SELECT 1 FROM pg_stat_replication WHERE application_name = '${STANDBY}'`);
  return rows.length > 0;
}

async function ask(connectionString: string, sql: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
