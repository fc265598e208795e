import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import {
  checksumOf,
  type Migration,
  migrate,
  shippedMigrations,
} from "../../../src/adapters/postgres/schema/migrate.ts";
import { openPostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { allocate, anIntent, holdLane, nonces } from "../../support/lane-samples.ts";
import { everyStatement } from "./every-statement.ts";
import { connectClient } from "./postgres-subject.ts";

const LACKS_A_RIGHT = "42501";

describe("a database role that may not change the schema", () => {
  const { prefix } = inject("postgres");
  const role = `${prefix}runs`;
  let database: TestDatabase;
  let owner: Awaited<ReturnType<typeof connectClient>>;
  let runner: Awaited<ReturnType<typeof connectClient>>;
  const asRole = () => {
    const url = new URL(database.url);
    [url.username, url.password] = [role, "secret"];
    return url.href;
  };

  beforeAll(async () => {
    database = await createTestDatabase();
    owner = await connectClient(database.url);
    await owner.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
    runner = await connectClient(asRole());
  });
  afterAll(async () => {
    await runner.end();
    await owner.query(`DROP OWNED BY ${role}`);
    await owner.query(`DROP ROLE ${role}`);
    await owner.end();
    await database.drop();
  });

  const refused = (sql: string) => expect(runner.query(sql)).rejects.toMatchObject({ code: LACKS_A_RIGHT });

  it("has no access before migrate grants access", async () => {
    await refused("SELECT FROM fencepost.lane");
    await expect(migrate({ databaseUrl: database.url, grant: "nobody_at_all" })).rejects.toMatchObject({
      ...{
        name: "SchemaMismatch",
        message: "the database role nobody_at_all for the grants does not exist: create it first",
      },
    });
  });

  // protects [The database's rights, name and limits] src/adapters/postgres/schema/migrate.ts
  it("may run every statement of the program", async () => {
    expect(await migrate({ databaseUrl: database.url, grant: role })).toEqual({ applied: [] });
    for (const { statement } of await everyStatement()) {
      await runner.query(`PREPARE every AS ${statement.sql}`);
      const { rows } = await runner.query<{ many: number }>(
        "SELECT cardinality(parameter_types) AS many FROM pg_prepared_statements WHERE name = 'every'",
      );
      const values = Array.from({ length: rows[0]?.many ?? 0 }, () => "NULL").join(", ");
      // EXPLAIN starts the executor, which checks the privileges on every table and function of the plan.
      await runner.query(`EXPLAIN EXECUTE every${values === "" ? "" : ` (${values})`}`);
      await runner.query("DEALLOCATE every");
    }
    await refused("CREATE TABLE fencepost.another (id integer)");
    await refused("TRUNCATE fencepost.transaction");
    await expect(runner.query("ALTER TABLE fencepost.lane ADD COLUMN another integer")).rejects.toThrow(
      "must be owner",
    );
    await expect(runner.query("DROP SCHEMA fencepost CASCADE")).rejects.toThrow("must be owner");
  });

  // protects [The database's rights, name and limits] src/adapters/postgres/schema/migrate.ts
  it("can start a node on the current schema", async () => {
    expect(await migrate({ databaseUrl: asRole() })).toEqual({ applied: [] });
    const store = await openPostgresStore({ databaseUrl: asRole(), clock: systemClock, leaseDurationMs: 30_000 });
    try {
      const fence = await holdLane(store);
      expect(nonces(await allocate(store, fence, [anIntent(fence.lane), anIntent(fence.lane)], 7))).toEqual([7, 8]);
    } finally {
      await store.close();
    }
  });

  // protects [The database's rights, name and limits] src/adapters/postgres/schema/migrate.ts
  it("cannot apply a migration", async () => {
    const sql = "-- works with: 0001_foundation.sql\nCREATE TABLE fencepost.later (id integer)";
    const later: Migration = { name: "9999_later.sql", sql, checksum: checksumOf(sql) };
    const migrations = [...(await shippedMigrations()), later];
    await expect(migrate({ databaseUrl: asRole(), migrations })).rejects.toMatchObject({ code: LACKS_A_RIGHT });
    expect(await migrate({ databaseUrl: database.url, migrations })).toEqual({ applied: [later.name] });
    await runner.query("INSERT INTO fencepost.later VALUES (1)");
  });
});

describe("a database role whose name contains the default schema name", () => {
  const { prefix } = inject("postgres");
  const [role, schema] = [`${prefix}-fencepost-app`, `${prefix}relay`];
  let database: TestDatabase;
  let owner: Awaited<ReturnType<typeof connectClient>>;

  beforeAll(async () => {
    database = await createTestDatabase();
    owner = await connectClient(database.url);
    await owner.query(`CREATE ROLE "${role}"`);
  });
  afterAll(async () => {
    await owner.query(`DROP OWNED BY "${role}"`);
    await owner.query(`DROP ROLE "${role}"`);
    await owner.end();
    await database.drop();
  });

  // protects [The database's rights, name and limits] src/adapters/postgres/schema/migrate.ts, src/adapters/postgres/rows/schema-name.ts
  it("gets its rights if the schema has another name", async () => {
    await migrate({ databaseUrl: database.url, schema, grant: role });
    const asked =
      "SELECT has_schema_privilege($1, $2, 'USAGE') AS uses, has_table_privilege($1, $3, 'INSERT') AS writes";
    expect((await owner.query(asked, [role, schema, `${schema}.lane`])).rows).toEqual([{ uses: true, writes: true }]);
    await owner.query(`CREATE TABLE ${schema}.later (id integer)`);
    const { rows } = await owner.query(asked, [role, "fencepost", `${schema}.later`]);
    expect(rows, "and in no other schema").toEqual([{ uses: false, writes: true }]);
  });
});
