import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import {
  checkSchema,
  checksumOf,
  type Migration,
  migrate,
  type SchemaMismatch,
  shippedMigrations,
} from "../../../src/adapters/postgres/migrate.ts";
import { connectClient } from "./postgres-subject.ts";

const ONE: Migration = migration("0001_one.sql", "CREATE TABLE fencepost.one (id integer)");
const TWO: Migration = migration("0002_two.sql", "CREATE TABLE fencepost.two (id integer)");

function migration(name: string, sql: string): Migration {
  return { name, sql, checksum: checksumOf(sql) };
}

describe("migrate", () => {
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
  const problemOf = async (work: Promise<unknown>) => {
    const error = (await work.then(
      () => null,
      (reason: unknown) => reason,
    )) as SchemaMismatch | null;
    expect(error?.message).not.toContain("\n");
    return error?.problem;
  };

  it("applies what is pending, in order, once", async () => {
    const databaseUrl = await emptyDatabase();
    expect(await migrate({ databaseUrl, migrations: [ONE] })).toEqual({ applied: [ONE.name] });
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [TWO.name] });
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [] });
    await checkSchema({ databaseUrl, migrations: [ONE, TWO] });
  });

  it("lets any number of runners start at once", async () => {
    const databaseUrl = await emptyDatabase();
    const reports = await Promise.all(Array.from({ length: 8 }, () => migrate({ databaseUrl })));
    const shipped = (await shippedMigrations()).map(({ name }) => name);
    expect(reports.flatMap(({ applied }) => applied)).toEqual(shipped);
  });

  it("gives every database a cluster secret of its own", async () => {
    const secrets = await Promise.all(
      [await emptyDatabase(), await emptyDatabase()].map(async (databaseUrl) => {
        await migrate({ databaseUrl });
        const client = await connectClient(databaseUrl);
        const { rows } = await client.query<{ secret: string }>("SELECT secret FROM fencepost.cluster");
        await client.end();
        return rows[0]?.secret;
      }),
    );
    expect(new Set(secrets).size).toBe(2);
    for (const secret of secrets) expect(secret).toMatch(/^[0-9a-f]{96}$/);
  });

  it("refuses a migration that was changed after it was applied", async () => {
    const databaseUrl = await emptyDatabase();
    await migrate({ databaseUrl, migrations: [ONE] });
    const changed = [migration(ONE.name, `${ONE.sql} -- harmless`), TWO];
    expect(await problemOf(migrate({ databaseUrl, migrations: changed }))).toBe("changed");
    expect(await problemOf(checkSchema({ databaseUrl, migrations: changed }))).toBe("changed");
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [TWO.name] });
  });

  it("refuses a schema that is newer than the program", async () => {
    const databaseUrl = await emptyDatabase();
    await migrate({ databaseUrl, migrations: [ONE, TWO] });
    expect(await problemOf(migrate({ databaseUrl, migrations: [ONE] }))).toBe("newer");
    expect(await problemOf(checkSchema({ databaseUrl, migrations: [ONE] }))).toBe("newer");
  });

  it("says what an older schema lacks, and changes nothing", async () => {
    const databaseUrl = await emptyDatabase();
    expect(await problemOf(checkSchema({ databaseUrl, migrations: [ONE] }))).toBe("behind");
    await migrate({ databaseUrl, migrations: [ONE] });
    expect(await problemOf(checkSchema({ databaseUrl, migrations: [ONE, TWO] }))).toBe("behind");
  });

  it("leaves nothing behind where one of several fails", async () => {
    const databaseUrl = await emptyDatabase();
    const broken = migration("0002_broken.sql", "CREATE TABLE fencepost.half (id integer); SELECT 1 / 0");
    await expect(migrate({ databaseUrl, migrations: [ONE, broken] })).rejects.toMatchObject({ code: "22012" });
    expect(await problemOf(checkSchema({ databaseUrl, migrations: [ONE] }))).toBe("behind");
    expect(await migrate({ databaseUrl, migrations: [ONE, TWO] })).toEqual({ applied: [ONE.name, TWO.name] });
  });

  it("does not mind line endings", () => {
    expect(checksumOf("SELECT 1;\r\nSELECT 2;\r\n")).toBe(checksumOf("SELECT 1;\nSELECT 2;\n"));
    expect(checksumOf("SELECT 1;")).not.toBe(checksumOf("SELECT 2;"));
  });

  it("fails with the driver's error where there is no server", async () => {
    await expect(migrate({ databaseUrl: "postgres://nobody@127.0.0.1:1/none" })).rejects.toMatchObject({
      code: "ECONNREFUSED",
    });
  });
});
