/** Tests the problems that `fencepost doctor` reports about a database, on a real database. */
import { randomBytes } from "node:crypto";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from "vitest";
import {
  type DatabaseFacts,
  examineDatabase,
  type OpenDatabase,
} from "../../../../src/adapters/postgres/schema/examine.ts";
import { shippedMigrations } from "../../../../src/adapters/postgres/schema/migrate.ts";
import { openPostgresStore } from "../../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../../src/adapters/system/clock.ts";
import { anInstance } from "../../../support/lane-samples.ts";
import { connectClient } from "../postgres-subject.ts";

const examine = (url: URL | string) =>
  examineDatabase({ databaseUrl: String(url), schema: "fencepost", clock: systemClock });

function opened(facts: DatabaseFacts): OpenDatabase {
  if (facts.kind === "refused") throw new Error(facts.message);
  return facts;
}

describe("examining a database for the doctor command", () => {
  let admin: pg.Client;
  const names: string[] = [];
  const roles: string[] = [];

  beforeAll(async () => {
    admin = await connectClient(inject("postgres").adminUrl);
  });
  afterEach(async () => {
    for (const name of names.splice(0)) await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    for (const role of roles.splice(0)) await admin.query(`DROP ROLE ${role}`);
  });
  afterAll(() => admin.end());

  const database = async (how: string): Promise<URL> => {
    const name = `${inject("postgres").prefix}${randomBytes(4).toString("hex")}`;
    names.push(name);
    await admin.query(`CREATE DATABASE ${name} ${how}`);
    const url = new URL(inject("postgres").adminUrl);
    url.pathname = `/${name}`;
    return url;
  };
  const migrated = () => database(`TEMPLATE ${inject("postgres").template}`);
  const asRole = async (url: URL): Promise<URL> => {
    const role = `doctor_${randomBytes(4).toString("hex")}`;
    roles.push(role);
    await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'right'`);
    const other = new URL(url);
    other.username = role;
    other.password = "right";
    return other;
  };

  it("reports a healthy database", async () => {
    const facts = opened(await examine(await migrated()));
    expect(facts).toMatchObject({
      standby: false,
      synchronousCommit: "on",
      encoding: "UTF8",
      pooled: false,
      mayCreate: true,
      forbiddenTables: [],
      nodes: [],
      schema: { pending: [], problem: null },
    });
    expect(facts.version).toBeGreaterThan(150_000);
    expect(facts.freeConnections).toBeGreaterThan(0);
    expect(Math.abs(facts.clockAheadMs)).toBeLessThan(60_000);
  });

  it("reports the time of the oldest outcome that is still in the feed", async () => {
    const url = await migrated();
    expect(opened(await examine(url)).oldestOutcomeAt).toBeNull();
    const client = await connectClient(String(url));
    await client.query(`INSERT INTO fencepost.completion (seq, epoch, tx_id, chain_id, signer, state, settled, at)
      SELECT n, 1, gen_random_uuid(), 1, '0x' || repeat('0', 40), 'STUCK', false, timestamptz '2026-01-01Z' + n * interval '1 day'
      FROM generate_series(1, 3) AS n`);
    await client.query("UPDATE fencepost.feed SET last_seq = 3, truncated_through = 1");
    await client.end();
    expect(opened(await examine(url)).oldestOutcomeAt, "the first is truncated").toEqual(
      new Date("2026-01-03T00:00:00Z"),
    );
  });

  it("reports the reason if the connection is refused", async () => {
    const url = await migrated();
    const wrong = (change: (other: URL) => void) => {
      const other = new URL(url);
      change(other);
      return examine(other);
    };
    const refused = (code: string) => ({ kind: "refused", code });
    expect(await examine("postgres://nobody@127.0.0.1:1/none")).toMatchObject(refused("ECONNREFUSED"));
    expect(await wrong((other) => (other.pathname = "/not_there"))).toMatchObject(refused("3D000"));
    const role = await asRole(url);
    role.password = "wrong";
    expect(await examine(role)).toMatchObject(refused("28P01"));
  });

  it("reports a database setting that can lose acknowledged commits", async () => {
    const url = await migrated();
    await admin.query(`ALTER DATABASE ${url.pathname.slice(1)} SET synchronous_commit = off`);
    expect(await examine(url)).toMatchObject({ synchronousCommit: "off" });
  });

  it("reports pending migrations and unknown migrations", async () => {
    const empty = await examine(await database(""));
    expect(empty).toMatchObject({ schema: { applied: 0, problem: null }, mayCreate: true });
    const shipped = (await shippedMigrations()).map(({ name }) => name);
    expect(opened(empty).schema.pending).toEqual(shipped);
    const url = await migrated();
    const client = await connectClient(url.href);
    await client.query("DELETE FROM fencepost.migration WHERE name = (SELECT max(name) FROM fencepost.migration)");
    expect(opened(await examine(url)).schema.pending).toHaveLength(1);
    await client.query("INSERT INTO fencepost.migration (name, checksum) VALUES ('9999_later.sql', 'x')");
    expect(opened(await examine(url)).schema.problem).toMatch(/9999_later\.sql/);
    await client.end();
  });

  it("reports which rights the role lacks", async () => {
    const stranger = await asRole(await migrated());
    expect(opened(await examine(stranger)).forbiddenTables).toContain("lane");
    const newcomer = await asRole(await database(""));
    expect(await examine(newcomer)).toMatchObject({ mayCreate: false, schema: { applied: 0 } });
  });

  it("reports which nodes are alive", async () => {
    const url = await migrated();
    const store = await openPostgresStore({ databaseUrl: url.href, clock: systemClock, leaseDurationMs: 30_000 });
    const instance = anInstance();
    await store.registerInstance(instance);
    const { nodes } = opened(await examine(url));
    expect(nodes).toMatchObject([{ nodeId: instance.nodeId, url: instance.url, version: instance.version }]);
    await store.close();
  });
});
