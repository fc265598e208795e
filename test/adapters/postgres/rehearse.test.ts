import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { allocate, anIntent, holdLane, nonces } from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/** The node's connections, and every version of a row that a commit may write. */
const SEEN = `SELECT
  (SELECT coalesce(array_agg(pid), '{}') FROM pg_stat_activity
     WHERE application_name = 'fencepost' AND datname = current_database()) AS connections,
  (SELECT jsonb_agg(jsonb_build_array(l, l.ctid::text, l.xmin::text)) FROM fencepost.lane AS l) AS lanes,
  (SELECT count(*)::int FROM fencepost.transaction) AS transactions, (SELECT count(*)::int FROM fencepost.step) AS steps`;

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

  async function look() {
    const { rows } = await subject.client.query<{ connections: readonly number[] }>(SEEN);
    const { connections = [], ...written } = rows[0] ?? {};
    return { connections, written };
  }

  /** Connections that the rehearsal opened; others may close meanwhile. */
  async function openedByRehearsal() {
    const before = await look();
    await store.rehearse();
    const after = await look();
    expect(after.written).toEqual(before.written);
    return after.connections.filter((pid) => !before.connections.includes(pid)).length;
  }

  it("opens no connection while the database's history is not known", async () => {
    expect(await openedByRehearsal()).toBe(0);
  });

  // protects [Short of time] src/adapters/postgres/commit/rehearse.ts
  it("opens a connection for each commit in flight, and writes nothing", async () => {
    const fence = await holdLane(store);
    expect(await openedByRehearsal()).toBe(COMMITS_IN_FLIGHT);
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([0]);
  });
});
