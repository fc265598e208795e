/**
 * A session that wants an exclusive lock on a lane's row can be starved: PostgreSQL lets sessions that want a shared
 * lock pass it. Fencepost takes no such shared locks, but another program may (an operator's tool, the host's own
 * code). That must not prevent a new owner from acquiring a dead owner's lane.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Fence } from "../../../src/domain/lane.ts";
import { StoreUnavailable } from "../../../src/ports/lane-store.ts";
import { aLane, allocate, anInstance, anIntent, holdLane, nonces } from "../../support/lane-samples.ts";
import { shareLock } from "../../support/share-lock.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { connectClient, createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
/**
 * Each test uses a new store: a store that has just forced its way to a lock, past other sessions, does not do so again
 * for a while.
 */
let store: Awaited<ReturnType<PostgresSubject["connect"]>>;

beforeAll(async () => {
  subject = await createPostgresSubject();
});
beforeEach(async () => {
  store = await subject.connect();
});
afterEach(() => store.close());
afterAll(() => subject.close());

async function starve({ lane }: Fence): Promise<() => Promise<void>> {
  const stop = await shareLock(subject.url, lane.signer);
  onTestFinished(stop);
  return stop;
}

/** Creates a lane whose owner is dead, and a live instance that may claim it. */
async function leftBehind(): Promise<{ readonly fence: Fence; readonly heir: string }> {
  const fence = await holdLane(store);
  const heir = anInstance();
  await store.registerInstance(heir);
  await store.declareDead(fence.instanceId, 1, "stood-still");
  return { fence, heir: heir.instanceId };
}

/**
 * On a crowded machine the sessions with shared locks may not release them in time. The store then has to force its way
 * to the lock several times.
 */
const PATIENCE = { giveUpMs: 60_000 };

function unlessBusy(error: unknown): null {
  if (error instanceof StoreUnavailable && error.busy) return null;
  throw error;
}

describe("a lane that other sessions keep locked in shared mode", () => {
  it("can still be claimed together with another lane when its owner is dead", async () => {
    const { fence, heir } = await leftBehind();
    const free = aLane();
    const stop = await starve(fence);
    const lanes = [fence.lane, free];
    const claim = async () => {
      const held = await store.claimLanes(lanes, heir, 2).catch(unlessBusy);
      return held?.length === 2 ? held : null;
    };
    const held = await waitUntil(claim, "both lanes are claimed", PATIENCE);
    const taken = held.find(({ fence: { lane } }) => lane.signer === fence.lane.signer);
    expect(taken).toMatchObject({ fence: { token: fence.token + 1, instanceId: heir } });
    await stop();
    expect(nonces(await allocate(store, taken?.fence as Fence, [anIntent(fence.lane)]))).toEqual([0]);
  });

  it("can still be acquired when its owner is dead", async () => {
    const { fence, heir } = await leftBehind();
    await starve(fence);
    const acquire = () => store.acquireLane(fence.lane, heir).catch(unlessBusy);
    const acquired = await waitUntil(acquire, "the lane is acquired", PATIENCE);
    expect(acquired).toMatchObject({ result: "takenOver", fence: { token: fence.token + 1, instanceId: heir } });
  });

  it("is not taken from a live owner", async () => {
    const fence = await holdLane(store);
    const rival = anInstance();
    await store.registerInstance(rival);
    await starve(fence);
    const acquire = async () => {
      const said = await store.acquireLane(fence.lane, rival.instanceId).catch((error: unknown) => error);
      return said instanceof StoreUnavailable ? said : null;
    };
    expect(await waitUntil(acquire, "it was kept waiting", PATIENCE)).toMatchObject({ busy: true });
    const { rows } = await subject.client.query("SELECT token::int AS token FROM fencepost.lane WHERE signer = $1", [
      fence.lane.signer,
    ]);
    expect(rows).toEqual([{ token: fence.token }]);
  });
});

describe("a lane that another session keeps locked permanently", () => {
  it("delays other lanes only briefly", async () => {
    const { fence, heir } = await leftBehind();
    const other = await holdLane(store);
    const keeper = await connectClient(subject.url);
    onTestFinished(() => keeper.end());
    await keeper.query("BEGIN");
    await keeper.query("SELECT 1 FROM fencepost.lane WHERE signer = $1 FOR SHARE", [fence.lane.signer]);
    await expect(store.claimLanes([fence.lane], heir, 1)).rejects.toMatchObject({ busy: true });
    expect(nonces(await allocate(store, other, [anIntent(other.lane)]))).toEqual([0]);
    expect(await store.claimLanes([fence.lane], heir, 1)).toEqual([]);
    await keeper.query("ROLLBACK");
    expect(await store.claimLanes([fence.lane], heir, 1)).toMatchObject([{ fence: { token: fence.token + 1 } }]);
  });
});
