import { existsSync } from "node:fs";
import { systemClock } from "../../src/adapters/system/clock.ts";
import { type Pooler, startPooler } from "../../src/main/dev/chaos/pooler.ts";

const CANDIDATES = [
  "/usr/sbin/pgbouncer",
  "/usr/bin/pgbouncer",
  "/usr/local/bin/pgbouncer",
  "/opt/homebrew/bin/pgbouncer",
];

/** Path of an installed PgBouncer; undefined if there is none. */
export const pgbouncerPath = CANDIDATES.find((path) => existsSync(path));

export const NO_PGBOUNCER = "no pgbouncer is installed: what happens behind a transaction pooler stays untested";

export type PgBouncer = Pooler;

/** Starts a pooler in transaction mode in front of one database, with fewer server connections than clients. */
export async function startPgBouncer(databaseUrl: string, poolSize = 10): Promise<PgBouncer> {
  if (pgbouncerPath === undefined) throw new Error(NO_PGBOUNCER);
  return startPooler(systemClock, { program: pgbouncerPath, databaseUrl, poolSize });
}
