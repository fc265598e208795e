/**
 * A process that is starved of CPU reads the database's responses late. The server aborts a transaction that is idle
 * between two round trips, so critical work takes one round trip. A response that arrived in time counts, however late
 * the process reads it.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { Committer } from "../../../src/application/writer/committer.ts";
import type { Store } from "../../contracts/store-subject.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { allocate, anInstance, anIntent, holdLane, nonces } from "../../support/lane-samples.ts";
import { recordTelemetry } from "../../support/recorded-telemetry.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { createPostgresSubject, openSessionLock, type PostgresSubject } from "./postgres-subject.ts";

/** With this lease, a database transaction may last two thirds of a second and may be idle for 66 ms. */
const LEASE_MS = 2_000;
const IDLE_MS = 66;
const READ_AT_MOST_MS = 1_000;

let subject: PostgresSubject;
let store: Store;

beforeAll(async () => {
  subject = await createPostgresSubject({ leaseDurationMs: LEASE_MS });
});
beforeEach(async () => {
  store = await subject.connect();
});
afterEach(() => store.close());
afterAll(() => subject.close());

/**
 * Retries work that takes two round trips. On a crowded machine the server may abort it between the two, so it may need
 * several attempts.
 */
function settled<T>(work: () => Promise<T>): Promise<T & {}> {
  return waitUntil(() => work().catch(() => null), "the database has taken it");
}

/** Blocks the event loop for `ms`, as if the process were not scheduled. */
function standStill(ms: number): void {
  const untilMs = systemClock.monotonicMs() + ms;
  while (systemClock.monotonicMs() < untilMs);
}

describe("one database round trip", () => {
  let proxy: TcpProxy;
  let counted: PostgresStore;

  beforeEach(async () => {
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
    const databaseUrl = proxy.through(subject.url);
    counted = await openPostgresStore({ clock: systemClock, leaseDurationMs: 60_000, databaseUrl });
  });
  afterEach(async () => {
    await counted.close();
    await proxy.close();
  });

  async function tripsOf(work: () => Promise<unknown>): Promise<number> {
    const before = proxy.roundTrips;
    await work();
    return proxy.roundTrips - before;
  }

  // protects [Short of time] src/adapters/postgres/stores/leases.ts, src/adapters/postgres/session/durably.ts
  it("is enough to renew a heartbeat", async () => {
    const { instanceId } = await holdLane(counted);
    await counted.renewInstance(instanceId, LEASE_MS);
    expect(await tripsOf(() => counted.renewInstance(instanceId, LEASE_MS))).toBe(1);
  });

  // protects [Short of time] src/adapters/postgres/stores/leases.ts, src/adapters/postgres/statements/node-instance.ts
  it("is enough to publish which session lock a node holds", async () => {
    const { instanceId } = await holdLane(counted);
    await counted.renewInstance(instanceId, LEASE_MS);
    const lock = await openSessionLock(subject.url);
    onTestFinished(() => lock.close());
    for (const published of [lock.held, null]) {
      expect(await tripsOf(() => counted.publishLock(instanceId, published))).toBe(1);
      const row = (await counted.instances()).find((each) => each.instanceId === instanceId);
      expect(row?.lock).toBe(published === null ? "none" : "held");
    }
  });

  // protects [Short of time] src/adapters/postgres/stores/register-instance.ts
  it("is enough to register a new instance and to delete long-dead instances", async () => {
    const before = await holdLane(counted);
    await counted.renewInstance(before.instanceId, LEASE_MS);
    const old = anInstance();
    await settled(() => store.registerInstance(old));
    await subject.client.query(
      "UPDATE fencepost.node_instance SET dead = true, heartbeat_at = now() - interval '2 days' WHERE instance_id = $1",
      [old.instanceId],
    );
    await subject.client.query(
      "INSERT INTO fencepost.commit_marker (store_id, slot, marker, written_at) VALUES ($1, 1, $1, now() - interval '31 days')",
      [old.instanceId],
    );
    const next = anInstance({ replaces: [before.instanceId] });
    expect(await tripsOf(() => counted.registerInstance(next))).toBe(1);
    const left = await subject.client.query(
      `SELECT instance_id FROM fencepost.node_instance WHERE instance_id = $1
       UNION ALL SELECT store_id FROM fencepost.commit_marker WHERE store_id = $1`,
      [old.instanceId],
    );
    expect(left.rows).toEqual([]);
  });

  // protects [Short of time] src/adapters/postgres/stores/register-instance.ts
  it("is enough to register a new instance and to free the lanes of the previous instance", async () => {
    const fence = await holdLane(counted);
    await counted.renewInstance(fence.instanceId, LEASE_MS);
    const next = anInstance({ replaces: [fence.instanceId] });
    expect(await tripsOf(() => counted.registerInstance(next))).toBe(1);
    expect(await counted.acquireLane(fence.lane, next.instanceId)).toMatchObject({ result: "takenOver" });
  });
});

describe("one database round trip after the database's history has changed", () => {
  let other: PostgresSubject;
  let there: Store;

  beforeEach(async () => {
    other = await createPostgresSubject();
    there = await other.connect();
  });
  afterEach(async () => {
    await there.close();
    await other.close();
  });

  // protects [Short of time] src/adapters/postgres/statements/session.ts
  it("does not renew the heartbeat", async () => {
    const { instanceId } = await holdLane(there);
    await other.client.query("UPDATE fencepost.feed SET epoch = epoch + 1");
    await expect(there.renewInstance(instanceId, LEASE_MS)).rejects.toMatchObject({ name: "HistoryChanged" });
  });

  it.each([
    ["an acknowledged commit is missing", "UPDATE fencepost.commit_marker SET marker = gen_random_uuid()"],
    ["the feed's last number is lower than before", "UPDATE fencepost.feed SET last_seq = 4"],
    ["the recorded system is another one", "UPDATE fencepost.database_history SET system_identifier = 'another'"],
    ["the recorded WAL position is higher", "UPDATE fencepost.database_history SET wal_position = wal_position + 1e12"],
    // protects [Short of time] src/adapters/postgres/statements/session.ts
  ])("registers no instance if %s", async (_, change) => {
    const before = anInstance();
    await there.registerInstance(before);
    await other.client.query("UPDATE fencepost.feed SET last_seq = 5");
    await there.feed(0, 1);
    await other.client.query(change);
    const registered = await there.registerInstance(anInstance({ replaces: [before.instanceId] }));
    expect(registered).toMatchObject({ begun: true, mayHaveLost: true });
  });
});

describe("a process whose event loop is blocked", () => {
  it("still renews its heartbeat after the server's idle limit", async () => {
    const { instanceId } = await settled(() => holdLane(store));
    await settled(() => store.renewInstance(instanceId, 60_000));
    const renewing = store.renewInstance(instanceId, LEASE_MS);
    standStill(3 * IDLE_MS);
    expect(await renewing).toBe(true);
  });

  // protects [Short of time] src/adapters/postgres/session/connections.ts
  it("still reads an answer after the query's deadline", async () => {
    await store.ping();
    const asking = store.ping();
    standStill(READ_AT_MOST_MS + 100);
    await expect(asking).resolves.toBeUndefined();
  });

  // protects [Short of time] src/adapters/postgres/stores/leases.ts, src/adapters/postgres/session/durably.ts
  it("renews its heartbeat during many concurrent creates", async () => {
    const fence = await settled(() => holdLane(store));
    await settled(() => store.renewInstance(fence.instanceId, 60_000));
    let flooding = true;
    const flood = async (): Promise<void> => {
      while (flooding) {
        await allocate(store, fence, [anIntent(fence.lane)]).catch(() => undefined);
        standStill(IDLE_MS);
      }
    };
    const floods = Promise.all([flood(), flood(), flood(), flood()]);
    for (let n = 0; n < 5; n++) expect(await store.renewInstance(fence.instanceId, LEASE_MS)).toBe(true);
    flooding = false;
    await floods;
  });
});

describe("a database transaction that the server ended because it was idle", () => {
  /** Returns a store that, during its first commit, blocks this process as soon as the first round trip was sent. */
  function lateOnce(): Pick<Store, "commit"> {
    let isFirst = true;
    return {
      commit: (writes) => {
        const committing = store.commit(writes);
        if (isFirst) void afterAllThatIsQueued(() => standStill(5 * IDLE_MS));
        isFirst = false;
        return committing;
      },
    };
  }

  /**
   * Runs `act` after all queued promise callbacks but in the same turn of the event loop, so before any socket is read.
   */
  async function afterAllThatIsQueued(act: () => void): Promise<void> {
    for (let hop = 0; hop < 100; hop++) await null;
    act();
  }

  // protects [Short of time] src/adapters/postgres/session/errors.ts, src/adapters/postgres/session/write-transaction.ts
  it("is retried without a look-up of the outcome", async () => {
    const [fence, other] = [await settled(() => holdLane(store)), await settled(() => holdLane(store))];
    await settled(() => allocate(store, other, [anIntent(other.lane)]));
    const telemetry = recordTelemetry();
    const ports = { store: lateOnce(), clock: systemClock, entropy: createSeededEntropy(1), telemetry };
    const nothing = () => undefined;
    const events = { onCommitted: nothing, onFenced: nothing, onHistoryChanged: nothing, onGivenUp: nothing };
    const committer = new Committer(ports, { batchSize: 10, batchTimeoutMs: 5, shards: 4 }, events);
    const intent = anIntent(fence.lane);
    const outcome = await committer.write({ kind: "allocate", fence, floor: 0, items: [{ intent }] });
    expect(outcome).toMatchObject({ status: "allocated", cursor: 1, items: [{ result: "created", nonce: 0 }] });
    const [first] = telemetry.of("writer.busy");
    expect(first).toMatchObject({ tries: 1, reason: expect.stringContaining("idle-in-transaction") });
    expect(await store.transaction(intent.txId)).toMatchObject({ nonce: 0 });
    expect(nonces(await settled(() => allocate(store, fence, [anIntent(fence.lane)])))).toEqual([1]);
  });
});
