import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasTransactionTimeout } from "../../../src/adapters/postgres/session/limits.ts";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { crowding } from "../../support/crowding.ts";
import { AT, allocate, anInstance, anIntent, apply, holdLane, mine, nonces, step } from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { connectClient, createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const LEASE_MS = 15_000;

/** A node that freezes in the middle of a write may not delay another node for longer than a third of the lease. */
describe("a node that stalls during a database write", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  let frozen: PostgresStore;
  let store: PostgresStore;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    proxy = await TcpProxy.start(Number(new URL(subject.url).port));
    const options = { clock: systemClock, leaseDurationMs: LEASE_MS };
    frozen = await openPostgresStore({ ...options, databaseUrl: proxy.through(subject.url) });
    store = await openPostgresStore({ ...options, databaseUrl: subject.url });
  });
  afterAll(async () => {
    await frozen.close();
    await store.close();
    await proxy.close();
    await subject.close();
  });

  it("loses its session if it holds a lane's lock", async () => {
    const fence = await holdLane(store);
    const stalled = proxy.atNextCommit("stall-before");
    const intent = anIntent(fence.lane);
    const late = allocate(frozen, fence, [intent]).catch((error: unknown) => error);
    await stalled;
    const started = systemClock.monotonicMs();
    const heir = anInstance();
    await store.registerInstance(heir);
    await store.declareDead(fence.instanceId, 1, "stood-still");
    const taken = await store.acquireLane(fence.lane, heir.instanceId);
    expect(systemClock.monotonicMs() - started).toBeLessThan((LEASE_MS / 3) * crowding());
    if (taken.result === "notLeader") throw new Error("not taken");
    expect(nonces(await allocate(store, taken.fence, [anIntent(fence.lane)]))).toEqual([0]);
    expect(await late).toBeInstanceOf(StoreUnavailable);
    expect(await store.transaction(intent.txId)).toBeNull();
  });

  it.each([
    ["between two statements", () => proxy.holdFrom("fencepost:insert-transactions")],
    ["in the middle of one", () => proxy.holdWithin('{"half"}')],
  ])("loses its session if half of a pipelined transaction was sent: %s", async (_, hold) => {
    // The stalled process's own deadline timer never fires, so it closes no connection.
    const standing = { ...systemClock, after: () => () => undefined };
    const databaseUrl = proxy.through(subject.url);
    const paused = await openPostgresStore({ clock: standing, leaseDurationMs: LEASE_MS, databaseUrl });
    const fence = await holdLane(paused);
    await allocate(paused, fence, [anIntent(fence.lane)]);
    await allocate(paused, fence, [anIntent(fence.lane)]);
    const held = hold();
    const intent = anIntent(fence.lane, { requestId: "half" });
    const late = allocate(paused, fence, [intent]).catch((error: unknown) => error);
    const release = await held;
    const holding = `SELECT 1 FROM pg_stat_activity AS a JOIN pg_locks AS l USING (pid)
      WHERE a.datname = current_database() AND a.wait_event = 'ClientRead' AND a.xact_start IS NOT NULL AND l.mode = 'RowExclusiveLock'
        AND l.relation = 'fencepost.lane'::regclass`;
    await waitUntil(
      async () => (await subject.client.query(holding)).rowCount !== 0,
      "it has the lane and hears no more",
    );
    await subject.client.query("SELECT 1 FROM fencepost.lane WHERE signer = $1 FOR UPDATE", [fence.lane.signer]);
    expect((await subject.client.query(holding)).rowCount).toBe(0);
    release();
    // Before PostgreSQL 17, the idle timeout ends the transaction, which proves that COMMIT was never read. So the
    // store retries the allocation, and it is made once.
    const { rows } = await subject.client.query("SELECT current_setting('server_version_num')::int AS version");
    const made = await store.transaction(intent.txId);
    if (hasTransactionTimeout(rows[0].version)) {
      expect(await late).toBeInstanceOf(StoreUnavailable);
      expect(made).toBeNull();
    } else {
      expect(await late).toMatchObject([{ result: "created", nonce: 2 }]);
    }
    await paused.close();
  });

  it("delays no create of other nodes if it locks the feed's counter", async () => {
    const fence = await holdLane(store);
    const { intent, attempt } = await mine(store, fence);
    const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: attempt.txHash } as const;
    const confirm = () => apply(store, fence, [step(intent.txId, AT.mined, "confirm", { completion })]);
    const holder = await connectClient(subject.url);
    await holder.query("BEGIN");
    await holder.query("UPDATE fencepost.feed SET last_seq = last_seq");
    const started = systemClock.monotonicMs();
    const waiting = confirm().catch((error: unknown) => error);
    const other = await holdLane(store);
    expect(nonces(await allocate(store, other, [anIntent(other.lane)]))).toEqual([0]);
    expect(await waiting).toMatchObject({ name: "StoreUnavailable", busy: true });
    expect(systemClock.monotonicMs() - started).toBeLessThan((LEASE_MS / 3) * crowding());
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([1]);
    await holder.query("ROLLBACK");
    await holder.end();
    expect(await confirm()).toEqual(["applied"]);
  });

  it("still returns a result if the connection is lost after a transaction without writes", async () => {
    const fence = await holdLane(store);
    const claimant = anInstance();
    await frozen.registerInstance(claimant);
    const held = proxy.holdAt("ROLLBACK");
    const asking = frozen.acquireLane(fence.lane, claimant.instanceId);
    await held;
    proxy.cut();
    expect(await asking).toMatchObject({ result: "notLeader", owner: { instanceId: fence.instanceId } });
    expect(await frozen.acquireLane(fence.lane, claimant.instanceId)).toMatchObject({ result: "notLeader" });
  });

  it("gets a busy error if the connection is lost before anything was sent", async () => {
    const fence = await holdLane(store);
    const claimant = anInstance();
    await frozen.registerInstance(claimant);
    const held = proxy.holdAt("fencepost:lock-lanes-by-key");
    const asking = frozen.acquireLane(fence.lane, claimant.instanceId).catch((error: unknown) => error);
    await held;
    proxy.cut();
    expect(await asking).toMatchObject({ name: "StoreUnavailable", busy: true });
    expect(await frozen.acquireLane(fence.lane, claimant.instanceId)).toMatchObject({ result: "notLeader" });
  });

  it("gets a busy error if it waits for a lock that another session holds", async () => {
    const fence = await holdLane(store);
    const holder = await connectClient(subject.url);
    await holder.query("BEGIN");
    await holder.query("SELECT 1 FROM fencepost.lane WHERE signer = $1 FOR UPDATE", [fence.lane.signer]);
    await expect(allocate(store, fence, [anIntent(fence.lane)])).rejects.toMatchObject({
      name: "StoreUnavailable",
      busy: true,
    });
    await holder.query("ROLLBACK");
    await holder.end();
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([0]);
  });
});
