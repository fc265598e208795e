import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { allocate, anInstance, anIntent, holdLane, nonces } from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/**
 * A transaction that the store sends in a single write may reach the server long after the store gave up waiting for
 * it.
 */
describe("an allocation that reaches PostgreSQL late", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  let store: PostgresStore;
  let fence: Fence;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
    const databaseUrl = proxy.through(subject.url);
    store = await openPostgresStore({ clock: systemClock, leaseDurationMs: 3_000, databaseUrl });
  });
  afterAll(async () => {
    await store.close();
    await proxy.close();
    await subject.close();
  });
  beforeEach(async () => {
    fence = await holdLane(store);
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([0]);
  });
  afterEach(() => proxy.admit());

  /**
   * Sends an allocation that the proxy delays, so that its outcome is unknown to the store. Resolves with a function
   * that lets the delayed bytes arrive at the server.
   */
  async function leaveUnknown(): Promise<() => Promise<void>> {
    const delayed = proxy.delayNextCommit();
    const failure = allocate(store, fence, [anIntent(fence.lane)]).catch((error: unknown) => error);
    const deliver = await delayed;
    proxy.refuse();
    proxy.cut();
    expect(await failure).toBeInstanceOf(OutcomeUnknown);
    await expect(store.loadLane(fence), "it cannot be told yet").rejects.toBeInstanceOf(StoreUnavailable);
    proxy.admit();
    return deliver;
  }

  it("has no effect if the owner has already acquired the lane again", async () => {
    const deliver = await leaveUnknown();
    expect(await store.acquireLane(fence.lane, fence.instanceId)).toEqual({ result: "kept", fence });
    expect(await store.loadLane(fence)).toMatchObject({ cursor: 1, allocated: 1 });
    await deliver();
    expect(await store.loadLane(fence)).toMatchObject({ cursor: 1, allocated: 1 });
  });

  it("is read by the owner if it arrives before the next acquisition of the lane", async () => {
    const deliver = await leaveUnknown();
    await deliver();
    expect(await store.acquireLane(fence.lane, fence.instanceId)).toEqual({ result: "kept", fence });
    expect(await store.loadLane(fence)).toMatchObject({ cursor: 2, allocated: 2 });
  });

  it("has no effect after it was reported lost", async () => {
    await subject.client.query("UPDATE fencepost.commit_marker SET written_at = now() - interval '31 days'");
    const delayed = proxy.delayNextCommit();
    const failure = allocate(store, fence, [anIntent(fence.lane)]).catch((error: unknown) => error);
    const deliver = await delayed;
    expect(await failure).toMatchObject({ busy: true });
    await store.registerInstance(anInstance());
    await deliver();
    expect(await store.loadLane(fence)).toMatchObject({ cursor: 1, allocated: 1 });
  });
});
