import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { insertIntake } from "../../../../src/adapters/postgres/insert-intake.ts";
import { inSchema, speakingIn } from "../../../../src/adapters/postgres/rows/schema-name.ts";
import { migrate, shippedMigrations } from "../../../../src/adapters/postgres/schema/migrate.ts";
import { PostgresSessionLock } from "../../../../src/adapters/postgres/session/session-lock.ts";
import { openPostgresStore, type PostgresStore } from "../../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { createEntropy } from "../../../../src/adapters/system/entropy.ts";
import { allocate, anIntent, holdLane, nonces } from "../../../support/lane-samples.ts";
import { recordTelemetry } from "../../../support/recorded-telemetry.ts";
import { dumpSchema } from "../../../support/schema-dump.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { everyStatement } from "../every-statement.ts";
import { connectClient } from "../postgres-subject.ts";

/**
 * Two Fencepost schemas in one database that has no schema named `fencepost`. So a statement that wrongly names
 * `fencepost` fails.
 */
describe("database schemas with a configured name", () => {
  const name = `${inject("postgres").prefix}named`;
  let admin: Awaited<ReturnType<typeof connectClient>>;
  let client: Awaited<ReturnType<typeof connectClient>>;
  let databaseUrl: string;
  const stores: PostgresStore[] = [];

  beforeAll(async () => {
    admin = await connectClient(inject("postgres").adminUrl);
    await admin.query(`CREATE DATABASE ${name}`);
    const url = new URL(inject("postgres").adminUrl);
    url.pathname = `/${name}`;
    databaseUrl = url.href;
    client = await connectClient(databaseUrl);
  });
  afterAll(async () => {
    for (const store of stores) await store.close();
    await client.end();
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();
  });
  const open = async (schema: string) => {
    const store = await openPostgresStore({ databaseUrl, schema, clock: systemClock, leaseDurationMs: 30_000 });
    stores.push(store);
    return store;
  };

  // protects [The database's rights, name and limits] src/adapters/postgres/rows/schema-name.ts, src/adapters/postgres/session/pipeline.ts
  it.each(["payments", "treasury_2"])("contain all database objects: %s", async (schema) => {
    const applied = (await shippedMigrations()).map(({ name }) => name);
    expect(await migrate({ databaseUrl, schema })).toEqual({ applied });
    expect(await migrate({ databaseUrl, schema })).toEqual({ applied: [] });
    for (const { statement } of await everyStatement()) {
      await client.query(`PREPARE every AS ${inSchema(statement.sql, schema)}`);
      await client.query("DEALLOCATE every");
    }
    const { rows } = await client.query("SELECT FROM pg_namespace WHERE nspname = 'fencepost'");
    expect(rows).toEqual([]);
    const speaking = speakingIn(await connectClient(databaseUrl), schema);
    // With the schema as the session's search path, PostgreSQL prints names without the schema prefix.
    await speaking.query("SET search_path TO fencepost");
    const dump = await dumpSchema(speaking).finally(() => speaking.end());
    const snapshot = new URL("../schema.sql", import.meta.url);
    expect(dump.replaceAll(schema, "fencepost")).toBe(await readFile(snapshot, "utf8"));
  });

  // protects [The database's rights, name and limits] src/adapters/postgres/rows/schema-name.ts, src/adapters/postgres/session/pipeline.ts
  it("each have their own next nonce for a lane", async () => {
    const [payments, treasury] = [await open("payments"), await open("treasury_2")];
    const fence = await holdLane(payments);
    const other = await holdLane(treasury, fence.lane);
    expect(nonces(await allocate(payments, fence, [anIntent(fence.lane)], 3))).toEqual([3]);
    expect(nonces(await allocate(treasury, other, [anIntent(fence.lane)], 9))).toEqual([9]);
    const intent = anIntent(fence.lane);
    await insertIntake(client, intent, "payments");
    expect(await payments.whatWaits()).toMatchObject({ intents: true });
    expect(await treasury.whatWaits()).toMatchObject({ intents: false });
  });

  // protects [The database's rights, name and limits] src/adapters/postgres/rows/schema-name.ts, src/adapters/postgres/session/pipeline.ts
  it("have their own session locks", async () => {
    const telemetry = recordTelemetry();
    const lock = new PostgresSessionLock({
      ...{ directUrl: databaseUrl, schema: "payments", clock: systemClock },
      ...{ entropy: createEntropy(systemClock), telemetry },
    });
    await waitUntil(async () => {
      const { rows } = await client.query<{ name: string }>(
        "SELECT classid::regclass::text AS name FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2",
      );
      return rows.some((row) => row.name === "payments.node_instance");
    }, "the lock is held on the table of its schema");
    await lock.close();
  });

  it("are refused if the name is an SQL keyword", async () => {
    await expect(migrate({ databaseUrl, schema: "user" })).rejects.toMatchObject({
      message: "schema user needs quotes: choose another name",
    });
  });
});
