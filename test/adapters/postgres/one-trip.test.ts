import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import { HistoryChanged, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { allocate, anInstance, anIntent, commitOne, holdLane, nonces, outcomesOf } from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/** This statement name occurs in the bytes of every transaction that is sent in one round trip, and in no other. */
const ONE_TRIP = "fencepost:prove-lanes";
const BEGIN = "BEGIN ISOLATION LEVEL";

/**
 * An allocation planned from the store's memory of a lane is committed only if the database matches that memory;
 * otherwise nothing of it is committed.
 */
describe("an allocation in one database round trip", () => {
  let subject: PostgresSubject;
  let proxy: TcpProxy;
  let store: PostgresStore;
  let fence: Fence;

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
  /** The first allocation of a lane takes several round trips; after it, the store has the lane in memory. */
  beforeEach(async () => {
    fence = await holdLane(store);
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([0]);
  });
  afterEach(() => proxy.admit());

  /** Holds the store's bytes back at the proxy, changes the database with `interfere`, then lets the bytes continue. */
  async function interfering<T>(work: Promise<T>, interfere: () => Promise<unknown>): Promise<T> {
    const release = await proxy.holdAt(ONE_TRIP);
    await interfere();
    release();
    return work;
  }

  function cursor(): Promise<number> {
    return one("SELECT next_nonce::int AS value FROM fencepost.lane WHERE signer = $1", [fence.lane.signer]);
  }

  function count(): Promise<number> {
    return one("SELECT count(*)::int AS value FROM fencepost.transaction WHERE signer = $1", [fence.lane.signer]);
  }

  async function one(sql: string, values: readonly unknown[]): Promise<number> {
    const { rows } = await subject.client.query<{ value: number }>(sql, [...values]);
    return rows[0]?.value ?? Number.NaN;
  }

  async function createdAt(txId: string | undefined): Promise<Date | undefined> {
    const sql = "SELECT created_at FROM fencepost.transaction WHERE tx_id = $1";
    return (await subject.client.query<{ created_at: Date }>(sql, [txId])).rows[0]?.created_at;
  }

  function lane(change: string): Promise<unknown> {
    return subject.client.query(`UPDATE fencepost.lane SET ${change} WHERE signer = $1`, [fence.lane.signer]);
  }

  it("continues at the lane's next nonce", async () => {
    const intents = [anIntent(fence.lane, { requestId: "a" }), anIntent(fence.lane)];
    const results = await interfering(allocate(store, fence, intents), async () => undefined);
    expect(nonces(results)).toEqual([1, 2]);
    expect(results[0]).toMatchObject({ result: "created", createdAt: await createdAt(intents[0]?.txId) });
    const { nodeId } = (await store.instances()).find(({ instanceId }) => instanceId === fence.instanceId) ?? {};
    expect(await store.history(intents[0]?.txId ?? "")).toMatchObject([
      { ordinal: 1, event: "allocate", fromState: null, state: "ALLOCATED", token: fence.token, nodeId, count: 1 },
    ]);
  });

  it("works with special characters in request id and metadata", async () => {
    for (const word of ["back\\slash", "tab\\t", "\\N", "\\."]) {
      const intent = anIntent(fence.lane, { requestId: word, metadata: { [word]: `${word}\n` } });
      await interfering(allocate(store, fence, [intent]), async () => undefined);
      expect(await store.transaction(intent.txId)).toMatchObject({
        requestId: word,
        metadata: { [word]: `${word}\n` },
      });
    }
  });

  it("may contain transactions of several lanes", async () => {
    const other = await holdLane(store);
    await allocate(store, other, [anIntent(other.lane), anIntent(other.lane)]);
    const write = (of: Fence) => ({
      kind: "allocate" as const,
      fence: of,
      floor: null,
      items: [{ intent: anIntent(of.lane) }],
    });
    const outcomes = await interfering(outcomesOf(store, [write(other), write(fence)]), async () => undefined);
    expect(outcomes).toMatchObject([{ cursor: 3 }, { cursor: 2 }]);
  });

  it.each([
    [
      "another owner",
      "owner_instance = (SELECT instance_id FROM fencepost.node_instance WHERE instance_id <> owner_instance LIMIT 1)",
    ],
    ["a later token", "token = token + 1"],
    ["another cursor", "next_nonce = 7"],
    ["a suspension", "suspended = true, suspended_by = 'HISTORY'"],
    ["another epoch", "reconciled_epoch = 0"],
    // protects [The fence] src/adapters/postgres/commit/commit.ts
  ])("has the same results as one write per lane if a lane has %s", async (_, change) => {
    const other = await holdLane(store);
    await allocate(store, other, [anIntent(other.lane)]);
    const writes = [other, fence].map((of) => ({
      kind: "allocate" as const,
      fence: of,
      floor: null,
      items: [{ intent: anIntent(of.lane) }],
    }));
    const [unharmed, changed] = await interfering(outcomesOf(store, writes), () => lane(change));
    expect(unharmed).toMatchObject({ status: "allocated", items: [{ result: "created", nonce: 1 }] });
    const isMoved = change.startsWith("next_nonce");
    const isHeld = change.startsWith("suspended") || change.startsWith("reconciled");
    const result = isMoved ? { result: "created", nonce: 7 } : { result: "held" };
    expect(changed).toMatchObject(isMoved || isHeld ? { status: "allocated", items: [result] } : { status: "fenced" });
    expect([await cursor(), await count()]).toEqual(isMoved ? [8, 2] : [1, 1]);
  });

  it("starts at the next nonce that another writer has set", async () => {
    const results = await interfering(allocate(store, fence, [anIntent(fence.lane)]), () => lane("next_nonce = 7"));
    expect(nonces(results)).toEqual([7]);
    expect([await cursor(), await count()]).toEqual([8, 2]);
  });

  it("writes nothing if the node no longer owns the lane", async () => {
    const heir = anInstance();
    await store.registerInstance(heir);
    const write = { kind: "allocate" as const, fence, floor: null, items: [{ intent: anIntent(fence.lane) }] };
    const outcome = await interfering(commitOne(store, write), () =>
      lane(`owner_instance = '${heir.instanceId}', token = token + 1`),
    );
    expect(outcome).toEqual({ status: "fenced" });
    expect([await cursor(), await count()]).toEqual([1, 1]);
  });

  it("writes nothing if the instance was declared dead", async () => {
    for (const change of ["dead = true", "dead = false, expires_at = clock_timestamp() - interval '1 second'"]) {
      const work = allocate(store, fence, [anIntent(fence.lane)]).catch(() => "refused");
      const kill = () =>
        subject.client.query(`UPDATE fencepost.node_instance SET ${change} WHERE instance_id = $1`, [fence.instanceId]);
      // After the first failure the store may avoid committing in one round trip, so the second case may take several
      // round trips. The result must be the same.
      await (change.startsWith("dead = true") ? interfering(work, kill) : kill().then(() => work));
      expect([await cursor(), await count()]).toEqual([1, 1]);
    }
  });

  it("gives no nonce if the lane was suspended in the meantime", async () => {
    const work = allocate(store, fence, [anIntent(fence.lane)]);
    const results = await interfering(work, () => lane("suspended = true, suspended_by = 'HISTORY'"));
    expect(results).toMatchObject([{ result: "held" }]);
    expect(await cursor()).toBe(1);
  });

  it("consumes no nonce for an existing request id", async () => {
    const first = anIntent(fence.lane, { requestId: "once" });
    await allocate(store, fence, [first]);
    const repeat = anIntent(fence.lane, { requestId: "once" });
    const batch = [anIntent(fence.lane), repeat, anIntent(fence.lane)];
    const results = await allocate(store, fence, batch);
    expect(results).toMatchObject([
      { nonce: 2 },
      { result: "duplicate", existing: { txId: first.txId } },
      { nonce: 3 },
    ]);
    expect([await cursor(), await count()]).toEqual([4, 4]);
  });

  it("creates one transaction for a request id that occurs twice", async () => {
    const batch = [anIntent(fence.lane, { requestId: "twin" }), anIntent(fence.lane, { requestId: "twin" })];
    expect(await allocate(store, fence, batch)).toMatchObject([{ nonce: 1 }, { result: "duplicate" }]);
    expect([await cursor(), await count()]).toEqual([2, 2]);
  });

  it("changes nothing if only the BEGIN failed", async () => {
    const intent = anIntent(fence.lane);
    const begins = proxy.spoil(BEGIN, BEGIN.replace("BEGIN", "BEGAN"));
    const markers = () => subject.client.query("SELECT slot, marker FROM fencepost.commit_marker ORDER BY 1, 2");
    const before = (await markers()).rows;
    const hold = proxy.holdAt("fencepost:lock-lanes");
    const writing = allocate(store, fence, [intent]);
    await begins;
    // The store has begun its ordinary path of several round trips. So the server has already processed the one-trip
    // transaction whose BEGIN failed.
    const release = await hold;
    expect((await markers()).rows).toEqual(before);
    expect([await cursor(), await count()]).toEqual([1, 1]);
    release();
    expect(nonces(await writing)).toEqual([1]);
    expect([await cursor(), await count()]).toEqual([2, 2]);
  });

  // protects [The fence] src/adapters/postgres/commit/commit.ts, src/adapters/postgres/statements/commit-marker.ts
  it("returns the results even if the answer was lost", async () => {
    const intent = anIntent(fence.lane, { requestId: "kept" });
    const hit = proxy.atNextCommit("cut-after");
    const results = await allocate(store, fence, [intent]);
    await hit;
    expect(results).toMatchObject([{ nonce: 1, createdAt: await createdAt(intent.txId) }]);
    expect([await cursor(), await count()]).toEqual([2, 2]);
  });

  it("consumes no nonce if it never reached the database", async () => {
    const hit = proxy.atNextCommit("cut-before");
    const failure = await allocate(store, fence, [anIntent(fence.lane)]).catch((error: unknown) => error);
    await hit;
    expect(failure).toBeInstanceOf(StoreUnavailable);
    expect(failure).toMatchObject({ busy: true });
    expect([await cursor(), await count()]).toEqual([1, 1]);
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([1]);
  });

  it("changes nothing if it arrives after it was reported lost", async () => {
    const intent = anIntent(fence.lane, { requestId: "late" });
    const delayed = proxy.delayNextCommit();
    const failure = allocate(store, fence, [intent]).catch((error: unknown) => error);
    const deliver = await delayed;
    expect(await failure).toMatchObject({ busy: true });
    await deliver();
    expect([await cursor(), await count()]).toEqual([1, 1]);
    expect(nonces(await allocate(store, fence, [intent]))).toEqual([1]);
  });

  it("is not used for the next commit after a failed commit", async () => {
    await interfering(allocate(store, fence, [anIntent(fence.lane)]), () => lane("next_nonce = 5"));
    const again = proxy.holdAt(ONE_TRIP);
    let tried = false;
    const release = again.then((go) => {
      tried = true;
      go();
    });
    await allocate(store, fence, [anIntent(fence.lane)]);
    expect(tried).toBe(false);
    for (let commits = 0; commits < 4; commits++) await allocate(store, fence, [anIntent(fence.lane)]);
    await release;
    expect([await cursor(), await count()]).toEqual([11, 7]);
  });

  it("writes nothing if the database's history has changed", async () => {
    const work = allocate(store, fence, [anIntent(fence.lane)]);
    const outcome = interfering(work, () =>
      subject.client.query("UPDATE fencepost.feed SET epoch = epoch + 1 WHERE only_row"),
    );
    await expect(outcome).rejects.toBeInstanceOf(HistoryChanged);
    await subject.client.query("UPDATE fencepost.feed SET epoch = epoch - 1 WHERE only_row");
    expect([await cursor(), await count()]).toEqual([1, 1]);
  });
});
