import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { Client } from "pg";
import type { TestProject } from "vitest/node";
import { migrate } from "../../src/adapters/postgres/schema/migrate.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { startEmbeddedPostgres } from "../../src/main/dev/embedded/postgres.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

/** The test run's PostgreSQL server, as provided to every test file. */
export interface TestPostgres {
  /** URL of a superuser on a database that is never cloned. */
  readonly adminUrl: string;
  /** Name of the database that `createTestDatabase` clones: migrated and closed to connections. */
  readonly template: string;
  /** Prefix of the names of clones; those that remain are dropped when the run ends. */
  readonly prefix: string;
}

declare module "vitest" {
  interface ProvidedContext {
    postgres: TestPostgres;
  }
}

interface Server {
  readonly adminUrl: string;
  stop(): Promise<void>;
}

/**
 * One PostgreSQL for the whole run: an embedded one, or that of FENCEPOST_TEST_DATABASE_URL (the suite runs on 15 to
 * 18).
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.FENCEPOST_TEST_DATABASE_URL;
  const server = given === undefined ? await startServer() : { adminUrl: given, stop: () => Promise.resolve() };
  const run = randomBytes(4).toString("hex");
  const postgres = {
    adminUrl: server.adminUrl,
    template: `fencepost_template_${run}`,
    prefix: `fencepost_test_${run}_`,
  };
  try {
    await makeTemplate(postgres);
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide("postgres", postgres);
  return async () => {
    if (given !== undefined) await dropAll(postgres);
    await server.stop();
  };
}

/** Starts the server without fsync: after a power cut the tests simply run again. */
async function startServer(): Promise<Server> {
  const directory = await makeTemporaryDirectory();
  const server = await startEmbeddedPostgres({
    directory: directory.path,
    clock: systemClock,
    log: () => undefined,
    settings: { fsync: "off", full_page_writes: "off", max_connections: "200" },
  });
  return {
    adminUrl: server.url,
    stop: async () => {
      await server.stop();
      await directory.remove();
      // Remove the server's home too. It is outside of the temporary directory if the tests run as root and the
      // server's account may not enter that directory.
      await rm(server.home, { recursive: true, force: true });
    },
  };
}

async function makeTemplate({ adminUrl, template }: TestPostgres): Promise<void> {
  await withClient(adminUrl, (client) => client.query(`CREATE DATABASE ${template}`));
  const url = new URL(adminUrl);
  url.pathname = `/${template}`;
  await migrate({ databaseUrl: url.href });
  await withClient(adminUrl, (client) => client.query(`ALTER DATABASE ${template} ALLOW_CONNECTIONS false`));
}

async function dropAll({ adminUrl, template, prefix }: TestPostgres): Promise<void> {
  await withClient(adminUrl, async (client) => {
    const left = await client.query<{ datname: string }>(
      "SELECT datname FROM pg_database WHERE starts_with(datname, $1)",
      [prefix],
    );
    for (const name of [...left.rows.map((row) => row.datname), template]) {
      await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });
}

async function withClient(url: string, use: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}
