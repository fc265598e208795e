import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fence, Lane } from "../../../src/domain/lane.ts";
import { compareLanes } from "../../../src/domain/lane.ts";
import type { Store } from "../../contracts/store-subject.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  commitOne,
  holdLane,
  outcomesOf,
  step,
} from "../../support/lane-samples.ts";
import { connectClient, createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

let subject: PostgresSubject;
let store: Store;

beforeAll(async () => {
  subject = await createPostgresSubject();
  store = await subject.connect();
});
afterAll(async () => {
  await store.close();
  await subject.close();
});

/** Locks a lane row in a transaction of its own, as another writer or a takeover would. */
async function lockLane(lane: Lane): Promise<Client> {
  const client = await connectClient(subject.url);
  await client.query("BEGIN");
  await client.query("SELECT 1 FROM fencepost.lane WHERE chain_id = $1 AND signer = $2 FOR NO KEY UPDATE", [
    lane.chainId,
    lane.signer,
  ]);
  return client;
}

async function takeOver(client: Client, fence: Fence, heir: string): Promise<void> {
  await client.query(
    "UPDATE fencepost.lane SET owner_instance = $3, token = token + 1 WHERE chain_id = $1 AND signer = $2",
    [fence.lane.chainId, fence.lane.signer, heir],
  );
}

describe("a stale owner of a lane", () => {
  it("writes nothing if a takeover commits before the stale owner gets the lane's lock", async () => {
    const kinds = ["allocate", "transition", "suspend", "align"] as const;
    for (const kind of kinds) {
      const fence = await holdLane(store);
      const intent = anIntent(fence.lane);
      await allocate(store, fence, [intent]);
      const heir = anInstance();
      await store.registerInstance(heir);
      const usurper = await lockLane(fence.lane);
      const late = commitOne(
        store,
        {
          allocate: { kind: "allocate", fence, floor: 0, items: [{ intent: anIntent(fence.lane) }] } as const,
          transition: {
            kind: "transition",
            fence,
            items: [step(intent.txId, AT.allocated, "sign", { attempt: anAttempt() })],
          } as const,
          suspend: { kind: "suspend", fence, suspended: true } as const,
          align: { kind: "align", fence, floor: 99 } as const,
        }[kind],
      );
      await subject.whenWaiting(1);
      await takeOver(usurper, fence, heir.instanceId);
      await usurper.query("COMMIT");
      expect(await late).toEqual({ status: "fenced" });
      const now = { ...fence, instanceId: heir.instanceId, token: fence.token + 1 };
      expect(await store.loadLane(now)).toMatchObject({ cursor: 1, suspendedBy: null, allocated: 1, tracking: [] });
      await usurper.end();
    }
  });

  it("continues to write if the takeover rolls back", async () => {
    const fence = await holdLane(store);
    const heir = anInstance();
    await store.registerInstance(heir);
    const usurper = await lockLane(fence.lane);
    const late = allocate(store, fence, [anIntent(fence.lane)]);
    await subject.whenWaiting(1);
    await takeOver(usurper, fence, heir.instanceId);
    await usurper.query("ROLLBACK");
    expect(await late).toMatchObject([{ result: "created", nonce: 0 }]);
    await usurper.end();
  });

  it("is refused if another instance owns the lane under the same fencing token", async () => {
    const fence = await holdLane(store);
    const twin = anInstance();
    await store.registerInstance(twin);
    await subject.client.query("UPDATE fencepost.lane SET owner_instance = $2 WHERE signer = $1", [
      fence.lane.signer,
      twin.instanceId,
    ]);
    expect(await commitOne(store, { kind: "suspend", fence, suspended: true })).toEqual({ status: "fenced" });
  });

  it("is refused from the moment of being declared dead", async () => {
    const fence = await holdLane(store);
    expect(await store.declareDead(fence.instanceId, 1, "stood-still")).toBe(true);
    expect(await commitOne(store, { kind: "suspend", fence, suspended: true })).toEqual({ status: "fenced" });
  });
});

describe("a lane takeover", () => {
  it("waits for an open write to the lane, and reads its result", async () => {
    const fence = await holdLane(store);
    await store.declareDead(fence.instanceId, 1, "stood-still");
    const heir = anInstance();
    await store.registerInstance(heir);
    const writer = await lockLane(fence.lane);
    const taking = store.acquireLane(fence.lane, heir.instanceId);
    await subject.whenWaiting(1);
    await writer.query("UPDATE fencepost.lane SET next_nonce = 7 WHERE signer = $1", [fence.lane.signer]);
    await writer.query("COMMIT");
    const taken = await taking;
    expect(taken).toMatchObject({ result: "takenOver", fence: { token: 2 } });
    if (taken.result === "notLeader") throw new Error("not taken");
    expect(await store.loadLane(taken.fence)).toMatchObject({ cursor: 7 });
    await writer.end();
  });

  it("skips lanes that are being written, if many lanes are taken over together", async () => {
    const instance = anInstance();
    await store.registerInstance(instance);
    const lanes = [aLane(), aLane(), aLane()];
    await store.claimLanes(lanes, instance.instanceId, 3);
    await store.retireInstance(instance.instanceId);
    const heir = anInstance();
    await store.registerInstance(heir);
    const busy = lanes[1] as Lane;
    const writer = await lockLane(busy);
    const taken = await store.claimLanes(lanes, heir.instanceId, 3);
    expect(taken.map(({ fence }) => fence.lane)).toEqual([...lanes].filter((lane) => lane !== busy).sort(compareLanes));
    await writer.query("ROLLBACK");
    await writer.end();
    expect(await store.claimLanes(lanes, heir.instanceId, 3)).toHaveLength(3);
  });

  it("has exactly one winner if 24 instances try at once", async () => {
    const lane = aLane();
    const stores = await Promise.all(Array.from({ length: 24 }, () => subject.connect()));
    for (let term = 1; term <= 3; term++) {
      const results = await Promise.all(
        stores.map(async (each) => {
          const instance = anInstance();
          await each.registerInstance(instance);
          return each.acquireLane(lane, instance.instanceId);
        }),
      );
      const winners = results.filter(({ result }) => result !== "notLeader");
      expect(winners).toMatchObject([{ fence: { lane, token: term } }]);
      const [winner] = winners;
      if (winner === undefined || winner.result === "notLeader") throw new Error("no claimant won");
      const losers = results.filter(({ result }) => result === "notLeader");
      expect(losers).toHaveLength(23);
      for (const loser of losers) expect(loser).toMatchObject({ owner: { instanceId: winner.fence.instanceId } });
      await store.retireInstance(winner.fence.instanceId);
    }
    await Promise.all(stores.map((each) => each.close()));
  });
});

describe("row locks in PostgreSQL", () => {
  it("allow a node to renew its heartbeat while its own write is open", async () => {
    const fence = await holdLane(store);
    const writer = await lockLane(fence.lane);
    expect(await store.renewInstance(fence.instanceId, 60_000)).toBe(true);
    await writer.query("ROLLBACK");
    await writer.end();
  });

  it("are taken in one order, so that batches in opposite order never deadlock", async () => {
    const fences = await Promise.all(Array.from({ length: 8 }, () => holdLane(store)));
    const other = await subject.connect();
    const rounds = Array.from({ length: 40 }, (_, round) => {
      const order = round % 2 === 0 ? fences : [...fences].reverse();
      return outcomesOf(
        round % 2 === 0 ? store : other,
        order.map(
          (fence) => ({ kind: "allocate", fence, floor: 0, items: [{ intent: anIntent(fence.lane) }] }) as const,
        ),
      );
    });
    const outcomes = (await Promise.all(rounds)).flat();
    expect(outcomes.every(({ status }) => status === "allocated")).toBe(true);
    for (const fence of fences) expect((await store.loadLane(fence))?.cursor).toBe(40);
    const { rows } = await subject.client.query(
      "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    );
    expect(Number(rows[0]?.deadlocks)).toBe(0);
    await other.close();
  });

  it("serialise concurrent commits for one transaction: the second sees the first", async () => {
    const fence = await holdLane(store);
    const intent = anIntent(fence.lane);
    await allocate(store, fence, [intent]);
    const sign = () => apply(store, fence, [step(intent.txId, AT.allocated, "sign", { attempt: anAttempt() })]);
    const results = (await Promise.all([sign(), sign(), sign()])).flat();
    expect(results.sort()).toEqual(["applied", "conflict", "conflict"]);
  });
});
