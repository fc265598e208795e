import { rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { startEmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";

export interface Databases {
  readonly version: string;
  /** Of the postmaster; every session is a child of it. */
  readonly pid: number;
  /** A new, empty database. */
  create(): Promise<string>;
  drop(url: string): Promise<void>;
  stop(): Promise<void>;
}

/** A real server as `fencepost dev` runs it: its own defaults, fsync on. */
export async function startDatabases(directory: string): Promise<Databases> {
  const server = await startEmbeddedPostgres({
    directory: join(directory, "postgres"),
    clock: systemClock,
    log: () => undefined,
  });
  let created = 0;
  return {
    version: server.version,
    pid: server.pid,
    create: async () => {
      const name = `bench_${created++}`;
      await query(server.url, `CREATE DATABASE ${name}`);
      return Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
    },
    drop: async (url) => {
      await query(server.url, `DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
    },
    stop: async () => {
      await server.stop();
      await rm(server.home, { recursive: true, force: true });
    },
  };
}

export async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<readonly Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}
