/**
 * A database was restored from a backup while no node ran. It is detected by evidence in the database itself, or
 * declared by the operator.
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeEach, describe, expect, inject, it } from "vitest";
import { migrate } from "../../../src/adapters/postgres/schema/migrate.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import { aLane, allocate, anInstance, anIntent, holdLane } from "../../support/lane-samples.ts";
import { connectClient } from "./postgres-subject.ts";

const { adminUrl, template, prefix } = inject("postgres");
const made: string[] = [];

async function asAdmin(statement: string): Promise<void> {
  const client = await connectClient(adminUrl);
  await client.query(statement).finally(() => client.end());
}

/** Creates a copy of a database on the same server. */
async function copyOf(source: string): Promise<string> {
  const name = `${prefix}${randomBytes(6).toString("hex")}`;
  await asAdmin(`CREATE DATABASE ${name} TEMPLATE ${source}`);
  made.push(name);
  return name;
}

const urlOf = (name: string) => Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href;

async function onDatabase<T>(name: string, work: (store: PostgresStore) => Promise<T>): Promise<T> {
  const store = await openPostgresStore({ databaseUrl: urlOf(name), clock: systemClock, leaseDurationMs: 30_000 });
  return work(store).finally(() => store.close());
}

/** Registers an instance on this database. The result shows whether a change of the database's history was detected. */
const found = (name: string) => onDatabase(name, (store) => store.registerInstance(anInstance()));

const standing = (name: string, lane: Lane) =>
  onDatabase(name, async (store) => (await store.lanes(lane.signer)).map(({ suspendedBy }) => suspendedBy));

async function makeTableAnew(name: string): Promise<void> {
  const client = await connectClient(urlOf(name));
  await client.query(`BEGIN;
    ALTER TABLE fencepost.lane RENAME TO before;
    CREATE TABLE fencepost.lane (LIKE fencepost.before INCLUDING ALL);
    INSERT INTO fencepost.lane SELECT * FROM fencepost.before;
    COMMIT`);
  await client.end();
}

describe("the check for a restored database", () => {
  let name: string;
  let lane: Lane;

  beforeEach(async () => {
    name = await copyOf(template);
    lane = aLane();
    await onDatabase(name, async (store) => {
      const fence = await holdLane(store, lane);
      await allocate(store, fence, [anIntent(lane)]);
    });
  });
  afterAll(async () => {
    for (const database of made) await asAdmin(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
  });

  it("keeps the feed epoch if nothing happened to the database", async () => {
    expect(await found(name)).toEqual({ epoch: 1, begun: false, mayHaveLost: false });
    expect(await standing(name, lane)).toEqual([null]);
  });

  // protects [A restored database] src/adapters/postgres/session/judge-history.ts, src/adapters/postgres/statements/database.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("suspends the lanes if a copy of the database was renamed to the old name", async () => {
    const backup = await copyOf(name);
    await asAdmin(`DROP DATABASE ${name}`);
    await asAdmin(`ALTER DATABASE ${backup} RENAME TO ${name}`);
    expect(await found(name)).toEqual({ epoch: 2, begun: true, mayHaveLost: true });
    expect(await standing(name, lane)).toEqual(["HISTORY"]);
    expect(await found(name), "told once").toMatchObject({ epoch: 2, begun: false });
  });

  // protects [A restored database] src/adapters/postgres/session/judge-history.ts, src/adapters/postgres/statements/database.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("suspends the lanes if a table was created anew, as pg_restore --clean does", async () => {
    await makeTableAnew(name);
    expect(await found(name)).toEqual({ epoch: 2, begun: true, mayHaveLost: true });
    expect(await standing(name, lane)).toEqual(["HISTORY"]);
  });

  // protects [A restored database] src/adapters/postgres/session/judge-history.ts, src/adapters/postgres/statements/database.ts, src/adapters/postgres/migrations/0037_release_0_1_0.sql
  it("detects a table that was recreated while a process runs", async () => {
    await onDatabase(name, async (store) => {
      await store.registerInstance(anInstance());
      await makeTableAnew(name);
      expect(await store.registerInstance(anInstance())).toEqual({ epoch: 2, begun: true, mayHaveLost: true });
    });
  });

  // protects [A restored database] src/adapters/postgres/statements/database.ts
  it("accepts a database of an earlier release", async () => {
    const client = await connectClient(urlOf(name));
    await client.query("UPDATE fencepost.database_history SET place = NULL");
    expect(await found(name)).toMatchObject({ begun: false });
    const { rows } = await client.query("SELECT place IS NOT NULL AS noted FROM fencepost.database_history");
    await client.end();
    expect(rows).toEqual([{ noted: true }]);
  });

  // protects [A restored database] src/adapters/postgres/schema/after-restore.ts
  it("suspends all lanes after the operator ran migrate with afterRestore", async () => {
    await onDatabase(name, async (running) => {
      const other = aLane();
      const fence = await holdLane(running, other);
      await migrate({ databaseUrl: urlOf(name), afterRestore: true });
      await migrate({ databaseUrl: urlOf(name), afterRestore: true });
      await expect(allocate(running, fence, [anIntent(other)])).rejects.toThrow("fenced");
      expect(await running.registerInstance(anInstance())).toEqual({ epoch: 2, begun: true, mayHaveLost: true });
      expect((await running.lanes(other.signer)).map(({ suspendedBy }) => suspendedBy)).toEqual(["HISTORY"]);
    });
    expect(await standing(name, lane)).toEqual(["HISTORY"]);
  });

  it("suspends nothing after afterRestore on a database that no node has used yet", async () => {
    const empty = await copyOf(template);
    await migrate({ databaseUrl: urlOf(empty), afterRestore: true });
    expect(await found(empty)).toMatchObject({ begun: false, mayHaveLost: false });
  });
});
