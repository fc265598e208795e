import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { aLane, allocate, anInstance, anIntent } from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { connectClient, createPostgresSubject, LEASE_MS, type PostgresSubject } from "./postgres-subject.ts";

describe("a new feed epoch after the database's history has changed", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  let store: PostgresStore;
  let other: PostgresStore;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
    const options = { clock: systemClock, leaseDurationMs: LEASE_MS };
    store = await openPostgresStore({ ...options, databaseUrl: proxy.through(subject.url) });
    other = await openPostgresStore({ ...options, databaseUrl: subject.url });
  });
  afterAll(async () => {
    await store.close();
    await other.close();
    await proxy.close();
    await subject.close();
  });

  it("also suspends a lane that is created at the same time", async () => {
    const lane = aLane();
    const instance = anInstance();
    await store.registerInstance(instance);
    await other.registerInstance(anInstance());
    const feed = await connectClient(subject.url);
    await feed.query("BEGIN; SELECT 1 FROM fencepost.feed FOR UPDATE");
    const held = proxy.holdCommitBehind("fencepost:take-lanes");
    const acquiring = store.acquireLane(lane, instance.instanceId);
    const release = await held;
    await subject.changeHistory();
    const beginning = other.registerInstance(anInstance());
    await subject.whenWaiting(1);
    release();
    const acquired = await acquiring;
    if (acquired.result !== "acquired") throw new Error(acquired.result);
    const allocating = allocate(store, acquired.fence, [anIntent(lane)]).catch((error: unknown) => error);
    await Promise.race([allocating, subject.whenWaiting(2)]);
    await feed.query("COMMIT");
    await feed.end();
    expect(await beginning).toMatchObject({ begun: true, mayHaveLost: true });
    await allocating;
    const [record] = await other.lanes(lane.signer);
    expect(record).toMatchObject({ owner: null, suspendedBy: "HISTORY" });
  });
});
