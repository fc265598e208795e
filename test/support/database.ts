import { randomBytes } from "node:crypto";
import { Client } from "pg";
import { inject } from "vitest";
import type { TestPostgres } from "./global-setup.ts";

export interface TestDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/**
 * Creates a database with the current schema, cloned from the run's template in well under 100 ms. Clones may be made
 * in parallel, because no session is ever connected to the template.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const postgres: TestPostgres | undefined = inject("postgres");
  if (postgres === undefined) throw new Error("this file has no database: vitest.config.ts names those that have one");
  const { adminUrl, template, prefix } = postgres;
  const name = `${prefix}${randomBytes(6).toString("hex")}`;
  // WAL_LOG, the default strategy, needs no checkpoint; FILE_COPY would force two, which slow down every test that runs
  // at that time.
  await asAdmin(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => asAdmin(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
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
