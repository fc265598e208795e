/** Repeats the store's contract tests behind PgBouncer in transaction mode. */
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { examineDatabase } from "../../../src/adapters/postgres/schema/examine.ts";
import { PostgresSessionLock } from "../../../src/adapters/postgres/session/session-lock.ts";
import { openPostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { createEntropy } from "../../../src/adapters/system/entropy.ts";
import { laneStoreContract } from "../../contracts/lane-store.contract.ts";
import { leaseStoreContract } from "../../contracts/lease-store.contract.ts";
import type { StoreSubject } from "../../contracts/store-subject.ts";
import { anInstance } from "../../support/lane-samples.ts";
import { NO_PGBOUNCER, pgbouncerPath, startPgBouncer } from "../../support/pgbouncer.ts";
import { enforced } from "../../support/policies.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { createPostgresSubject, LEASE_MS } from "./postgres-subject.ts";

async function createPooledSubject(): Promise<StoreSubject> {
  const subject = await createPostgresSubject();
  const pooler = await startPgBouncer(subject.url);
  return {
    ...subject,
    connect: async (policies) => {
      const options = { databaseUrl: pooler.url, clock: systemClock, leaseDurationMs: LEASE_MS };
      return enforced(await openPostgresStore({ ...options, policyWords: createCodec() }), policies);
    },
    close: async () => {
      await pooler.stop();
      await subject.close();
    },
  };
}

if (pgbouncerPath === undefined) process.stderr.write(`${NO_PGBOUNCER}\n`);

describe.skipIf(pgbouncerPath === undefined)("the PostgreSQL store behind PgBouncer", () => {
  leaseStoreContract("PgBouncer", createPooledSubject);
  laneStoreContract("PgBouncer", createPooledSubject);

  it("is reported as pooled by the doctor command", async () => {
    const { url, close } = await createPostgresSubject();
    const pooler = await startPgBouncer(url);
    const facts = await examineDatabase({ databaseUrl: pooler.url, schema: "fencepost", clock: systemClock });
    expect(facts).toMatchObject({ kind: "open", pooled: true });
    await pooler.stop();
    await close();
  });

  // protects [Processes that end, and those that only seem to] src/domain/chain/witness.ts
  it("takes no session lock, and reports that it has none", async () => {
    const { url, close } = await createPostgresSubject();
    const pooler = await startPgBouncer(url);
    const telemetry = recordTelemetry();
    const entropy = createEntropy(systemClock);
    const lock = new PostgresSessionLock({ directUrl: pooler.url, clock: systemClock, entropy, telemetry });
    const store = await openPostgresStore({ databaseUrl: pooler.url, clock: systemClock, leaseDurationMs: LEASE_MS });
    const instance = anInstance();
    await store.registerInstance(instance);
    await waitUntil(() => telemetry.of("instance.lock").length > 0, "it says so");
    expect(telemetry.of("instance.lock")).toMatchObject([{ state: "pooled" }]);
    expect(lock.held).toBeNull();
    await lock.close();
    expect((await store.instances())[0]?.lock).toBe("none");
    await store.close();
    await pooler.stop();
    await close();
  });
});
