import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { allocate, anIntent, holdLane, nonces } from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const COUNTERS = `SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS transactions,
  (SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'fencepost' AND datname = current_database()) AS connections`;

const COMMITS_IN_FLIGHT = 3;

describe("a rehearsal of commits", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  let store: PostgresStore;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
    const databaseUrl = proxy.through(subject.url);
    store = await openPostgresStore({ clock: systemClock, leaseDurationMs: 30_000, databaseUrl });
  });
  afterAll(async () => {
    await store.close();
    await proxy.close();
    await subject.close();
  });

  async function counters() {
    const { rows } = await subject.client.query<{ transactions: string; connections: number }>(COUNTERS);
    return rows[0];
  }

  it("opens no connection while the database's history is not known", async () => {
    const before = await counters();
    await store.rehearse();
    expect(await counters()).toEqual(before);
  });

  // protects [Short of time] src/adapters/postgres/commit/rehearse.ts
  it("opens a connection for each commit in flight, and writes nothing", async () => {
    const fence = await holdLane(store);
    const before = await counters();
    await store.rehearse();
    const after = await counters();
    expect(after).toEqual({ ...before, connections: (before?.connections ?? 0) + COMMITS_IN_FLIGHT });
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([0]);
  });
});
