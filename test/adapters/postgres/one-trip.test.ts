import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openPostgresStore, type PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import { HistoryChanged, StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { allocate, anInstance, anIntent, commitOne, holdLane, nonces, outcomesOf } from "../../support/lane-samples.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

/** Named in the bytes of every transaction that leaves in one write, and of no other. */
const ONE_TRIP = "fencepost:prove-lanes";
const BEGIN = "BEGIN ISOLATION LEVEL";

/** An allocation planned from memory is kept only if the database matches that memory; otherwise none of it is kept. */
describe("an allocation in one round trip", () => {
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
  /** The first allocation of a lane goes the usual way, and is remembered. */
  beforeEach(async () => {
    fence = await holdLane(store);
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([0]);
  });
  afterEach(() => proxy.admit());

  /** Does something behind the store's back once its bytes are on their way, then lets them go. */
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

  it("is what follows on one's own last write, with the same rows and the database's time", async () => {
    const intents = [anIntent(fence.lane, { requestId: "a" }), anIntent(fence.lane)];
    const results = await interfering(allocate(store, fence, intents), async () => undefined);
    expect(nonces(results)).toEqual([1, 2]);
    expect(results[0]).toMatchObject({ result: "created", createdAt: await createdAt(intents[0]?.txId) });
    const { nodeId } = (await store.instances()).find(({ instanceId }) => instanceId === fence.instanceId) ?? {};
    expect(await store.history(intents[0]?.txId ?? "")).toMatchObject([
      { ordinal: 1, event: "allocate", fromState: null, state: "ALLOCATED", token: fence.token, nodeId, count: 1 },
    ]);
  });

  it("goes well whatever is asked for: the next one goes the same way", async () => {
    for (const word of ["back\\slash", "tab\\t", "\\N", "\\."]) {
      const intent = anIntent(fence.lane, { requestId: word, metadata: { [word]: `${word}\n` } });
      await interfering(allocate(store, fence, [intent]), async () => undefined);
      expect(await store.transaction(intent.txId)).toMatchObject({
        requestId: word,
        metadata: { [word]: `${word}\n` },
      });
    }
  });

  it("carries several lanes, each with its own cursor", async () => {
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
  ])("of several lanes, one of which meets %s, is as if each had gone alone", async (_, change) => {
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

  it("that meets a cursor that another writer moved begins where it stands", async () => {
    const results = await interfering(allocate(store, fence, [anIntent(fence.lane)]), () => lane("next_nonce = 7"));
    expect(nonces(results)).toEqual([7]);
    expect([await cursor(), await count()]).toEqual([8, 2]);
  });

  it("of a term that is over writes nothing", async () => {
    const heir = anInstance();
    await store.registerInstance(heir);
    const write = { kind: "allocate" as const, fence, floor: null, items: [{ intent: anIntent(fence.lane) }] };
    const outcome = await interfering(commitOne(store, write), () =>
      lane(`owner_instance = '${heir.instanceId}', token = token + 1`),
    );
    expect(outcome).toEqual({ status: "fenced" });
    expect([await cursor(), await count()]).toEqual([1, 1]);
  });

  it("of an instance that was declared dead, or whose heartbeat is past, writes nothing", async () => {
    for (const change of ["dead = true", "dead = false, expires_at = clock_timestamp() - interval '1 second'"]) {
      const work = allocate(store, fence, [anIntent(fence.lane)]).catch(() => "refused");
      const kill = () =>
        subject.client.query(`UPDATE fencepost.node_instance SET ${change} WHERE instance_id = $1`, [fence.instanceId]);
      // The first failure makes the store careful: the second case may go the usual way, and must end the same.
      await (change.startsWith("dead = true") ? interfering(work, kill) : kill().then(() => work));
      expect([await cursor(), await count()]).toEqual([1, 1]);
    }
  });

  it("on a lane that was held back meanwhile gives no nonce", async () => {
    const work = allocate(store, fence, [anIntent(fence.lane)]);
    const results = await interfering(work, () => lane("suspended = true, suspended_by = 'HISTORY'"));
    expect(results).toMatchObject([{ result: "held" }]);
    expect(await cursor()).toBe(1);
  });

  it("with a request id that exists burns no nonce, and its neighbours are created", async () => {
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

  it("with a request id twice in one batch creates it once", async () => {
    const batch = [anIntent(fence.lane, { requestId: "twin" }), anIntent(fence.lane, { requestId: "twin" })];
    expect(await allocate(store, fence, batch)).toMatchObject([{ nonce: 1 }, { result: "duplicate" }]);
    expect([await cursor(), await count()]).toEqual([2, 2]);
  });

  it("whose BEGIN alone failed leaves nothing: not the cursor, not a row, not the marker", async () => {
    const intent = anIntent(fence.lane);
    const begins = proxy.spoil(BEGIN, BEGIN.replace("BEGIN", "BEGAN"));
    const markers = () => subject.client.query("SELECT slot, marker FROM fencepost.commit_marker ORDER BY 1, 2");
    const stood = (await markers()).rows;
    const hold = proxy.holdAt("fencepost:lock-lanes");
    const writing = allocate(store, fence, [intent]);
    await begins;
    // The usual way has begun: whatever the spoilt one did is done.
    const release = await hold;
    expect((await markers()).rows).toEqual(stood);
    expect([await cursor(), await count()]).toEqual([1, 1]);
    release();
    expect(nonces(await writing)).toEqual([1]);
    expect([await cursor(), await count()]).toEqual([2, 2]);
  });

  // protects [The fence] src/adapters/postgres/commit/commit.ts, src/adapters/postgres/statements/commit-marker.ts
  it("that was carried out without an answer is as if nothing had happened", async () => {
    const intent = anIntent(fence.lane, { requestId: "kept" });
    const hit = proxy.atNextCommit("cut-after");
    const results = await allocate(store, fence, [intent]);
    await hit;
    expect(results).toMatchObject([{ nonce: 1, createdAt: await createdAt(intent.txId) }]);
    expect([await cursor(), await count()]).toEqual([2, 2]);
  });

  it("that never arrived is unavailable and worth another try, with nothing consumed", async () => {
    const hit = proxy.atNextCommit("cut-before");
    const failure = await allocate(store, fence, [anIntent(fence.lane)]).catch((error: unknown) => error);
    await hit;
    expect(failure).toBeInstanceOf(StoreUnavailable);
    expect(failure).toMatchObject({ busy: true });
    expect([await cursor(), await count()]).toEqual([1, 1]);
    expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([1]);
  });

  it("that arrives after it was called lost changes nothing", async () => {
    const intent = anIntent(fence.lane, { requestId: "late" });
    const delayed = proxy.delayNextCommit();
    const failure = allocate(store, fence, [intent]).catch((error: unknown) => error);
    const deliver = await delayed;
    expect(await failure).toMatchObject({ busy: true });
    await deliver();
    expect([await cursor(), await count()]).toEqual([1, 1]);
    expect(nonces(await allocate(store, fence, [intent]))).toEqual([1]);
  });

  it("is tried again after it went wrong, but not at once", async () => {
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

  it("in another history writes nothing", async () => {
    const work = allocate(store, fence, [anIntent(fence.lane)]);
    const outcome = interfering(work, () =>
      subject.client.query("UPDATE fencepost.feed SET epoch = epoch + 1 WHERE only_row"),
    );
    await expect(outcome).rejects.toBeInstanceOf(HistoryChanged);
    await subject.client.query("UPDATE fencepost.feed SET epoch = epoch - 1 WHERE only_row");
    expect([await cursor(), await count()]).toEqual([1, 1]);
  });
});
