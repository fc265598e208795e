import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { crowding } from "../../support/crowding.ts";
import {
  AT,
  allocate,
  anInstance,
  anIntent,
  apply,
  confirm,
  holdLane,
  mine,
  step,
} from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/**
 * A COMMIT without a response may or may not have been carried out. The store finds out which, or reports that it could
 * not.
 */
describe("a database commit without an answer", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  let store: PostgresStore;
  let direct: PostgresStore;
  let fence: Fence;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
    const options = { clock: systemClock, leaseDurationMs: 12_000 };
    store = await openPostgresStore({ ...options, databaseUrl: proxy.through(subject.url) });
    // Read the policy document now. Otherwise the store's first write would read it, and the next COMMIT would not be
    // that of the write itself.
    await store.readPolicy();
    direct = await openPostgresStore({ ...options, databaseUrl: subject.url });
  });
  afterAll(async () => {
    await store.close();
    await direct.close();
    await proxy.close();
    await subject.close();
  });
  beforeEach(async () => {
    fence = await holdLane(direct);
  });
  afterEach(() => proxy.admit());

  it("returns its results as usual if it was carried out", async () => {
    const intent = anIntent(fence.lane, { requestId: "kept" });
    const hit = proxy.atNextCommit("cut-after");
    const results = await allocate(store, fence, [intent]);
    await hit;
    expect(results).toMatchObject([{ result: "created", nonce: 0 }]);
    expect(await direct.transaction(intent.txId)).toMatchObject({ state: "ALLOCATED", nonce: 0 });
  });

  it("consumes no nonce if the commit was not carried out", async () => {
    const intent = anIntent(fence.lane, { requestId: "lost" });
    const hit = proxy.atNextCommit("cut-before");
    const failure = await allocate(store, fence, [intent]).catch((error: unknown) => error);
    await hit;
    expect(failure).toBeInstanceOf(StoreUnavailable);
    expect(failure).toMatchObject({ busy: true });
    expect(await direct.transaction(intent.txId)).toBeNull();
    expect(await direct.loadLane(fence)).toMatchObject({ cursor: null });
    expect(await allocate(store, fence, [intent])).toMatchObject([{ result: "created", nonce: 0 }]);
  });

  it("is looked up after the client's own deadline", async () => {
    const intent = anIntent(fence.lane);
    const hit = proxy.atNextCommit("hold-answer");
    const results = await allocate(store, fence, [intent]);
    await hit;
    expect(results).toMatchObject([{ result: "created", nonce: 0 }]);
  });

  it("is reported as unknown at once if the store is closed meanwhile", async () => {
    const leaving = await openPostgresStore({
      clock: systemClock,
      leaseDurationMs: 12_000,
      databaseUrl: proxy.through(subject.url),
    });
    await leaving.readPolicy();
    const hit = proxy.atNextCommit("hold-answer");
    const writing = allocate(leaving, fence, [anIntent(fence.lane)]).catch((error: unknown) => error);
    await hit;
    const beganMs = systemClock.monotonicMs();
    await leaving.close();
    expect(await writing).toBeInstanceOf(OutcomeUnknown);
    expect(systemClock.monotonicMs() - beganMs).toBeLessThan(2_000 * crowding());
  });

  it("stays unknown if the database does not become reachable in time", async () => {
    const intent = anIntent(fence.lane);
    const hit = proxy.atNextCommit("cut-after");
    const writing = allocate(store, fence, [intent]);
    await hit;
    proxy.refuse();
    proxy.cut();
    await expect(writing).rejects.toBeInstanceOf(OutcomeUnknown);
  });

  it("appends its completions once", async () => {
    const { intent, attempt } = await mine(direct, fence);
    const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
    const { lastSeq } = await direct.feed(0, 1);
    const hit = proxy.atNextCommit("cut-after");
    expect(await apply(store, fence, [step(intent.txId, AT.mined, "confirm", { completion })])).toEqual(["applied"]);
    await hit;
    expect((await direct.feed(lastSeq, 10)).items).toMatchObject([{ seq: lastSeq + 1, txId: intent.txId }]);
  });

  it("is also looked up if it was a registration, a renewal or a takeover", async () => {
    const instance = anInstance();
    for (const work of [
      () => store.registerInstance(instance),
      () => store.renewInstance(instance.instanceId, 60_000),
      () => store.acquireLane({ ...fence.lane, chainId: 9 }, instance.instanceId),
    ]) {
      const hit = proxy.atNextCommit("cut-after");
      await expect(work()).resolves.not.toBe(false);
      await hit;
    }
    const row = (await direct.instances()).find(({ instanceId }) => instanceId === instance.instanceId);
    expect(row).toMatchObject({ counter: 2, lanes: 1 });
  });

  it("is waited for if the row of the first commit is not visible yet", async () => {
    const fresh = await openPostgresStore({
      clock: systemClock,
      leaseDurationMs: 12_000,
      databaseUrl: proxy.through(subject.url),
    });
    const instance = anInstance();
    const delayed = proxy.delayNextCommit();
    const registering = fresh.registerInstance(instance).catch((error: unknown) => error);
    const deliver = await delayed;
    await subject.whenWaiting(1);
    await deliver();
    expect(await registering).not.toBeInstanceOf(Error);
    expect((await direct.instances()).map(({ instanceId }) => instanceId)).toContain(instance.instanceId);
    await fresh.close();
  });

  it("is not confused with a connection lost before COMMIT", async () => {
    proxy.cut();
    for (let tries = 0; tries < 10; tries++) {
      const done = await allocate(store, fence, [anIntent(fence.lane)]).then(
        () => true,
        (error) => {
          expect(error).toBeInstanceOf(StoreUnavailable);
          return false;
        },
      );
      if (done) break;
    }
    expect(await direct.loadLane(fence)).toMatchObject({ cursor: 1 });
    expect(await confirm(store, fence)).toBeDefined();
  });
});
