/** The store's contracts once more, behind PgBouncer in transaction mode. */
import { describe } from "vitest";
import { openPostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { laneStoreContract } from "../../contracts/lane-store.contract.ts";
import { leaseStoreContract } from "../../contracts/lease-store.contract.ts";
import type { StoreSubject } from "../../contracts/store-subject.ts";
import { NO_PGBOUNCER, pgbouncerPath, startPgBouncer } from "../../support/pgbouncer.ts";
import { createPostgresSubject, LEASE_MS } from "./postgres-subject.ts";

async function createPooledSubject(): Promise<StoreSubject> {
  const subject = await createPostgresSubject();
  const pooler = await startPgBouncer(subject.url);
  return {
    ...subject,
    connect: () => openPostgresStore({ databaseUrl: pooler.url, clock: systemClock, leaseDurationMs: LEASE_MS }),
    close: async () => {
      await pooler.stop();
      await subject.close();
    },
  };
}

if (pgbouncerPath === undefined) process.stderr.write(`${NO_PGBOUNCER}\n`);

describe.skipIf(pgbouncerPath === undefined)("behind PgBouncer", () => {
  leaseStoreContract("PgBouncer", createPooledSubject);
  laneStoreContract("PgBouncer", createPooledSubject);
});
