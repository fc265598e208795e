import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { worksWithOf } from "../../../../src/adapters/postgres/rows/schema-skew.ts";
import {
  checksumOf,
  type Migration,
  migrate,
  type SchemaMismatch,
  schemaState,
  shippedMigrations,
} from "../../../../src/adapters/postgres/schema/migrate.ts";
import { openPostgresStore } from "../../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { SchemaTooNew } from "../../../../src/ports/lease-store.ts";
import { crowding } from "../../../support/crowding.ts";
import { anInstance } from "../../../support/lane-samples.ts";
import { dumpSchema } from "../../../support/schema-dump.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { connectClient } from "../postgres-subject.ts";

const ONE: Migration = migration("0001_one.sql", "CREATE TABLE fencepost.one (id integer)");
const TWO: Migration = migration("0002_two.sql", "CREATE TABLE fencepost.two (id integer)");
/** NEXT: two migrations of the next release. AFTER_NEXT: a migration of the release after the next. */
const NEXT: readonly Migration[] = [
  migration("0003_next.sql", "-- works with: 0002_two.sql\nCREATE TABLE fencepost.three (id integer)"),
  migration("0004_next.sql", "-- works with: 0002_two.sql\nCREATE TABLE fencepost.four (id integer)"),
];
const AFTER_NEXT: Migration = migration("0005_later.sql", "-- works with: 0004_next.sql\nDROP TABLE fencepost.two");

function migration(name: string, sql: string): Migration {
  return { name, sql, checksum: checksumOf(sql) };
}

let admin: Awaited<ReturnType<typeof connectClient>>;
const made: string[] = [];
beforeAll(async () => {
  admin = await connectClient(inject("postgres").adminUrl);
});
afterAll(async () => {
  for (const name of made) await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
  await admin.end();
});

const emptyDatabase = async () => {
  const name = `${inject("postgres").prefix}migrate_${made.length}`;
  made.push(name);
  await admin.query(`CREATE DATABASE ${name}`);
  const url = new URL(inject("postgres").adminUrl);
  url.pathname = `/${name}`;
  return url.href;
};
const waiting = async (client: typeof admin) => {
  const { rows } = await client.query<{ waiting: number }>(
    "SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted AND relation = 'fencepost.node_instance'::regclass",
  );
  return rows[0]?.waiting ?? 0;
};
const problemOf = async (work: Promise<unknown>) => {
  const error = (await work.then(
    () => null,
    (reason: unknown) => reason,
  )) as SchemaMismatch | null;
  expect(error?.message).not.toContain("\n");
  return error?.problem;
};

describe("migrate", () => {
  it("applies pending migrations in order, each once", async () => {
    const databaseUrl = await emptyDatabase();
    expect(await migrate({ databaseUrl, migrations: [ONE] })).toEqual({ applied: [ONE.name] });
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [TWO.name] });
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [] });
  });

  it("may be run by any number of processes at once", async () => {
    const databaseUrl = await emptyDatabase();
    const reports = await Promise.all(Array.from({ length: 8 }, () => migrate({ databaseUrl })));
    const shipped = (await shippedMigrations()).map(({ name }) => name);
    expect(reports.flatMap(({ applied }) => applied)).toEqual(shipped);
  });

  it("may be run by several processes at once if the database's default isolation is repeatable read", async () => {
    const databaseUrl = await emptyDatabase();
    await admin.query(`ALTER DATABASE ${made.at(-1)} SET default_transaction_isolation TO 'repeatable read'`);
    const reports = await Promise.all(Array.from({ length: 4 }, () => migrate({ databaseUrl })));
    const shipped = (await shippedMigrations()).map(({ name }) => name);
    expect(reports.flatMap(({ applied }) => applied)).toEqual(shipped);
  });

  it("does not block a running node while it waits for a locked table", async () => {
    const databaseUrl = await emptyDatabase();
    const shipped = await shippedMigrations();
    await migrate({ databaseUrl, migrations: shipped });
    const store = await openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs: 10_000 });
    const instance = anInstance({ leaseDurationMs: 10_000 });
    await store.registerInstance(instance);
    const backup = await connectClient(databaseUrl);
    await backup.query("BEGIN");
    await backup.query("LOCK TABLE fencepost.node_instance IN ACCESS SHARE MODE");
    const works = `-- works with: ${shipped.at(-1)?.name}`;
    const sql = `${works}\nALTER TABLE fencepost.node_instance ADD COLUMN more text`;
    const migrating = migrate({ databaseUrl, migrations: [...shipped, migration("9999_more.sql", sql)] });
    await waitUntil(async () => (await waiting(backup)) > 0, "the migration waits");
    const startedMs = performance.now();
    for (let renewed = false; !renewed; ) {
      renewed = await store.renewInstance(instance.instanceId, 10_000).catch(() => false);
      expect(performance.now() - startedMs, "within what is left of the lease").toBeLessThan(6_000 * crowding());
    }
    await backup.query("COMMIT");
    expect(await migrating).toEqual({ applied: ["9999_more.sql"] });
    await backup.end();
    await store.close();
  });

  it("refuses a migration that was changed after it was applied", async () => {
    const databaseUrl = await emptyDatabase();
    await migrate({ databaseUrl, migrations: [ONE] });
    const changed = [migration(ONE.name, `${ONE.sql} -- harmless`), TWO];
    expect(await problemOf(migrate({ databaseUrl, migrations: changed }))).toBe("changed");
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [TWO.name] });
  });

  it("refuses a schema that is newer than the program", async () => {
    const databaseUrl = await emptyDatabase();
    await migrate({ databaseUrl, migrations: [ONE, TWO] });
    expect(await problemOf(migrate({ databaseUrl, migrations: [ONE] }))).toBe("newer");
  });

  it("lets a program start on the schema of the next release, but not of a later release", async () => {
    const databaseUrl = await emptyDatabase();
    const later = [ONE, TWO, ...NEXT, AFTER_NEXT];
    await migrate({ databaseUrl, migrations: later.slice(0, 4) });
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [] });
    // A program with only migration ONE is two releases older than this schema, so it is refused.
    expect(await problemOf(migrate({ databaseUrl, migrations: [ONE] }))).toBe("newer");
    await migrate({ databaseUrl, migrations: later });
    await migrate({ databaseUrl, migrations: later.slice(0, 4) });
    const refused = migrate({ databaseUrl, migrations: [ONE, TWO] });
    await expect(refused).rejects.toThrow(
      "the database has migration 0005_later.sql, which is too new for this version (it works with releases that know 0004_next.sql); it knows up to 0002_two.sql: upgrade",
    );
    expect(await problemOf(migrate({ databaseUrl, migrations: [ONE, TWO] }))).toBe("newer");
  });

  it("refuses to apply a migration that is older than an unknown migration in the database", async () => {
    const databaseUrl = await emptyDatabase();
    const [three, four] = NEXT as [Migration, Migration];
    await migrate({ databaseUrl, migrations: [ONE, TWO, four] });
    expect(await problemOf(migrate({ databaseUrl, migrations: [ONE, TWO, three] }))).toBe("newer");
    expect(await problemOf(migrate({ databaseUrl, migrations: [ONE, three] }))).toBe("newer");
  });

  it("accepts a migration table of an older release, which lacks the column works_with", async () => {
    const databaseUrl = await emptyDatabase();
    await migrate({ databaseUrl, migrations: [ONE] });
    const client = await connectClient(databaseUrl);
    await client.query("ALTER TABLE fencepost.migration DROP COLUMN works_with");
    await client.end();
    await migrate({ databaseUrl, migrations: [ONE] });
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [TWO.name] });
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO, ...NEXT] })).toEqual({
      applied: NEXT.map(({ name }) => name),
    });
    await migrate({ databaseUrl, migrations: [ONE, TWO] });
  });

  it("refuses a migration that a running node could not work with", async () => {
    const databaseUrl = await emptyDatabase();
    const shipped = await shippedMigrations();
    await migrate({ databaseUrl });
    const store = await openPostgresStore({ databaseUrl, clock: systemClock, leaseDurationMs: 60_000 });
    const instance = anInstance();
    await store.registerInstance(instance);
    const next = migration("9001_next.sql", `-- works with: ${shipped.at(-1)?.name}\nSELECT 1`);
    const later = migration("9002_later.sql", "-- works with: 9001_next.sql\nSELECT 1");
    const migrations = [...shipped, next, later];
    const refused = migrate({ databaseUrl, migrations });
    expect(await problemOf(refused)).toBe("inUse");
    await expect(migrate({ databaseUrl, migrations })).rejects.toThrow(
      `node ${instance.nodeId} (${instance.version}) runs and knows only ${shipped.at(-1)?.name}, but migration 9002_later.sql`,
    );
    expect(await migrate({ databaseUrl, migrations: [...shipped, next] })).toEqual({ applied: [next.name] });
    await store.registerInstance(anInstance());
    // The node was paused until the other nodes declared it dead. When it resumes, the schema is two releases ahead.
    const client = await connectClient(databaseUrl);
    await client.query("UPDATE fencepost.node_instance SET dead = true");
    expect(await migrate({ databaseUrl, migrations })).toEqual({ applied: [later.name] });
    await expect(store.registerInstance(anInstance())).rejects.toThrow(SchemaTooNew);
    expect((await client.query("SELECT 1 FROM fencepost.node_instance WHERE NOT dead")).rows).toEqual([]);
    await client.end();
    await store.close();
  });

  it("has only migrations that name an earlier migration with which they are compatible", async () => {
    const shipped = await shippedMigrations();
    const names = ["0036_private_endpoints.sql", ...shipped.map(({ name }) => name)];
    for (const [index, { name, sql }] of shipped.entries()) {
      expect(names.slice(0, index + 1), name).toContain(worksWithOf(sql));
    }
  });

  it("leaves nothing behind if one of several migrations fails", async () => {
    const databaseUrl = await emptyDatabase();
    const broken = migration("0002_broken.sql", "CREATE TABLE fencepost.half (id integer); SELECT 1 / 0");
    await expect(migrate({ databaseUrl, migrations: [ONE, broken] })).rejects.toMatchObject({ code: "22012" });
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [ONE.name, TWO.name] });
  });

  it("computes the same checksum for any line endings", () => {
    expect(checksumOf("SELECT 1;\r\nSELECT 2;\r\n")).toBe(checksumOf("SELECT 1;\nSELECT 2;\n"));
    expect(checksumOf("SELECT 1;")).not.toBe(checksumOf("SELECT 2;"));
  });

  it("fails with the driver's error if there is no server", async () => {
    await expect(migrate({ databaseUrl: "postgres://nobody@127.0.0.1:1/none" })).rejects.toMatchObject({
      code: "ECONNREFUSED",
    });
  });
});

describe("a database from before release 0.1.0", () => {
  const NEWER = [
    ...["0037_release_0_1_0.sql", "0038_figures.sql", "0039_webhooks.sql", "0040_signatures.sql"],
    "0041_signature_lists.sql",
  ];

  async function databaseAt0036() {
    const databaseUrl = await emptyDatabase();
    const client = await connectClient(databaseUrl);
    await client.query(await readFile(new URL("at-0036.sql", import.meta.url), "utf8"));
    return { databaseUrl, client };
  }

  // protects [Upgrades] src/adapters/postgres/schema/migrate.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("is adopted unchanged if its last migration is 0036", async () => {
    const { databaseUrl, client } = await databaseAt0036();
    expect(await schemaState({ databaseUrl })).toEqual({ applied: 35, pending: NEWER, problem: null });
    const before = await client.query("SELECT * FROM fencepost.history ORDER BY ordinal");
    expect(before.rows.map(({ event }) => event)).toEqual(["allocate", "sign"]);
    expect(await migrate({ databaseUrl })).toEqual({ applied: NEWER });
    expect(await migrate({ databaseUrl })).toEqual({ applied: [] });
    const snapshot = await readFile(new URL("../schema.sql", import.meta.url), "utf8");
    expect((await dumpSchema(client)).replaceAll(" NOT VALID", "")).toBe(snapshot);
    expect((await client.query("SELECT * FROM fencepost.history ORDER BY ordinal")).rows).toEqual(before.rows);
    await client.end();
  });

  // protects [Upgrades] src/adapters/postgres/schema/migrate.ts
  it("is refused unchanged if migration 0036 is missing or a checksum differs", async () => {
    const { databaseUrl, client } = await databaseAt0036();
    await client.query("DELETE FROM fencepost.migration WHERE name >= '0035'");
    const refused = await problemOf(migrate({ databaseUrl }));
    expect(refused).toBe("older");
    await expect(migrate({ databaseUrl })).rejects.toThrow(
      "its newest migration is 0034_keys_away.sql: migrate it to 0036_private_endpoints.sql with the version that ships that file",
    );
    expect((await schemaState({ databaseUrl })).problem).toContain("0034_keys_away.sql");
    expect((await client.query("SELECT FROM fencepost.transaction")).rowCount).toBe(1);
    await client.end();
    const changed = await databaseAt0036();
    await changed.client.query("UPDATE fencepost.migration SET checksum = 'another' WHERE name LIKE '0020%'");
    expect(await problemOf(migrate({ databaseUrl: changed.databaseUrl }))).toBe("older");
    await changed.client.end();
  });

  // protects [Upgrades] src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("is upgraded while a node runs that knows only migrations up to 0036", async () => {
    const { databaseUrl, client } = await databaseAt0036();
    await client.query(
      `INSERT INTO fencepost.node_instance (instance_id, node_id, url, version, mode, started_at, heartbeat_at, expires_at, knows_migration)
       VALUES (gen_random_uuid(), 'old', '', '0.0.9', 'basic', now(), now(), now() + interval '1 hour', '0036_private_endpoints.sql')`,
    );
    expect(await migrate({ databaseUrl })).toEqual({ applied: NEWER });
    await client.end();
  });
});
