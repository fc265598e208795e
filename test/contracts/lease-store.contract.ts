import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareLanes, type Lane } from "../../src/domain/lane.ts";
import { InstanceOver } from "../../src/ports/lease-store.ts";
import { aLane, allocate, anInstance, anIntent, commitOne, holdLane, outcomesOf } from "../support/lane-samples.ts";
import { killsContract } from "./lease-store/kills.ts";
import { type LeaseStoreContext, servingContract } from "./lease-store/serving.ts";
import { sessionLocksContract } from "./lease-store/session-locks.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

/**
 * The contract of every LeaseStore: a lane has one owner at a time, tokens only grow, and a dead instance stays dead.
 */
export function leaseStoreContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`LeaseStore contract: ${name}`, () => {
    const context = {} as LeaseStoreContext;
    let subject: StoreSubject;
    let store: Store;

    beforeAll(async () => {
      subject = await create();
      store = await subject.connect();
      Object.assign(context, { subject, store });
    });
    afterAll(async () => {
      await store.close();
      await subject.close();
    });

    const find = async (instanceId: string) => (await store.instances()).find((row) => row.instanceId === instanceId);
    const register = async () => {
      const instance = anInstance();
      await store.registerInstance(instance);
      return instance.instanceId;
    };
    const die = async (instanceId: string) => {
      await subject.expire(instanceId);
      const counter = (await find(instanceId))?.counter ?? 0;
      expect(await store.declareDead(instanceId, counter, "expired")).toBe(true);
    };

    describe("node instances", () => {
      it("are registered with all their fields", async () => {
        const instance = anInstance({ mode: "basic", leaseDurationMs: 30_000 });
        await store.registerInstance(instance);
        const { leaseDurationMs, signers: _, ...identity } = instance;
        const found = await find(instance.instanceId);
        expect(found).toMatchObject({ ...identity, counter: 1, dead: false, expired: false, lanes: 0 });
        expect((found?.expiresAt.getTime() ?? 0) - (found?.heartbeatAt.getTime() ?? 0)).toBe(leaseDurationMs);
        expect(found?.startedAt).toEqual(found?.heartbeatAt);
      });

      it("cannot be registered twice", async () => {
        const instance = anInstance();
        await store.registerInstance(instance);
        await expect(store.registerInstance(instance)).rejects.toThrow();
      });

      // protects [Short of time] src/adapters/postgres/stores/register-instance.ts
      it("end the previous instance of their process when they register", async () => {
        const before = await register();
        const lane = aLane();
        await store.acquireLane(lane, before);
        const instance = anInstance({ replaces: [before] });
        await store.registerInstance(instance);
        expect(await find(before)).toMatchObject({ dead: true });
        expect(await store.renewInstance(before, 60_000)).toBe(false);
        expect(await store.acquireLane(lane, instance.instanceId)).toMatchObject({
          result: "takenOver",
          fence: { token: 2 },
        });
      });

      it("are renewed: the counter grows by one and the expiry moves", async () => {
        const id = await register();
        const before = await find(id);
        await subject.tick();
        expect(await store.renewInstance(id, 90_000)).toBe(true);
        const after = await find(id);
        expect(after?.counter).toBe(2);
        expect(after?.expiresAt.getTime()).toBeGreaterThan(before?.expiresAt.getTime() ?? 0);
        expect(after?.startedAt).toEqual(before?.startedAt);
      });

      // protects [Processes that end, and those that only seem to] src/application/lane/other-instances.ts
      it("publish for how long their last renewal is valid", async () => {
        const [short, long] = [await register(), await register()];
        await store.renewInstance(short, 10_000);
        await store.renewInstance(long, 60_000);
        const durations = [await find(short), await find(long)].map(
          (row) => (row?.expiresAt.getTime() ?? 0) - (row?.heartbeatAt.getTime() ?? 0),
        );
        expect(durations).toEqual([10_000, 60_000]);
      });

      it("are not renewed if they are expired, dead or unknown", async () => {
        const expired = await register();
        await subject.expire(expired);
        const dead = await register();
        await store.retireInstance(dead);
        expect(await store.renewInstance(expired, 60_000)).toBe(false);
        expect(await store.renewInstance(dead, 60_000)).toBe(false);
        expect(await store.renewInstance(randomUUID(), 60_000)).toBe(false);
        expect((await find(expired))?.expired).toBe(true);
        expect((await find(expired))?.counter).toBe(1);
      });

      it("are declared dead by expiry only if the database's clock agrees", async () => {
        const id = await register();
        expect(await store.declareDead(id, 1, "expired")).toBe(false);
        await subject.expire(id);
        expect(await store.declareDead(id, 1, "expired")).toBe(true);
        expect((await find(id))?.dead).toBe(true);
      });

      it("that stopped renewing are declared dead only if their counter is unchanged", async () => {
        const id = await register();
        await store.renewInstance(id, 60_000);
        expect(await store.declareDead(id, 1, "stood-still")).toBe(false);
        expect((await find(id))?.dead).toBe(false);
        expect(await store.declareDead(id, 2, "stood-still")).toBe(true);
        expect(await store.renewInstance(id, 60_000)).toBe(false);
      });

      it("are declared dead by exactly one of many nodes", async () => {
        const id = await register();
        const others = await Promise.all([subject.connect(), subject.connect(), subject.connect()]);
        const verdicts = await Promise.all(others.map((other) => other.declareDead(id, 1, "stood-still")));
        expect(verdicts.filter(Boolean)).toHaveLength(1);
        await Promise.all(others.map((other) => other.close()));
      });

      it("are neither declared dead nor retired if they are unknown", async () => {
        expect(await store.declareDead(randomUUID(), 1, "stood-still")).toBe(false);
        expect(await store.retireInstance(randomUUID())).toBe(0);
      });
    });

    describe("the signers and chains that an instance serves", () => servingContract(context));
    describe("kills of signers", () => killsContract(context));
    describe("session locks", () => sessionLocksContract(context));

    describe("acquiring a lane", () => {
      it("gives a new lane with fencing token 1", async () => {
        const id = await register();
        const lane = aLane();
        expect(await store.acquireLane(lane, id)).toEqual({
          result: "acquired",
          fence: { lane, instanceId: id, token: 1 },
        });
        expect((await find(id))?.lanes).toBe(1);
      });

      it("keeps the caller's own lane, with the same token", async () => {
        const fence = await holdLane(store);
        expect(await store.acquireLane(fence.lane, fence.instanceId)).toEqual({ result: "kept", fence });
      });

      it("reports the owner to every other node", async () => {
        const fence = await holdLane(store);
        const other = await register();
        const owner = await find(fence.instanceId);
        const { instanceId, nodeId, url, expiresAt } = owner ?? {};
        expect(await store.acquireLane(fence.lane, other)).toEqual({
          result: "notLeader",
          owner: { instanceId, nodeId, url, expiresAt },
        });
        await subject.expire(fence.instanceId);
        expect((await store.acquireLane(fence.lane, other)).result).toBe("notLeader");
      });

      it("succeeds with the next token if the owner is dead", async () => {
        const fence = await holdLane(store);
        await die(fence.instanceId);
        const other = await register();
        const taken = await store.acquireLane(fence.lane, other);
        expect(taken).toEqual({ result: "takenOver", fence: { lane: fence.lane, instanceId: other, token: 2 } });
        expect(await store.loadLane(fence)).toBeNull();
        expect(await store.releaseLane(fence)).toBe(false);
      });

      it("takes over a released lane with the next token", async () => {
        const fence = await holdLane(store);
        expect(await store.releaseLane(fence)).toBe(true);
        const again = await store.acquireLane(fence.lane, fence.instanceId);
        expect(again).toEqual({ result: "takenOver", fence: { ...fence, token: 2 } });
      });

      it("fails for an instance that is expired, dead or unknown", async () => {
        const expired = await register();
        await subject.expire(expired);
        const dead = await register();
        await store.retireInstance(dead);
        const lane = aLane();
        for (const claimant of [expired, dead, randomUUID()]) {
          await expect(store.acquireLane(lane, claimant)).rejects.toBeInstanceOf(InstanceOver);
          await expect(store.claimLanes([lane], claimant, 1)).rejects.toBeInstanceOf(InstanceOver);
        }
        const alive = await register();
        expect((await store.acquireLane(lane, alive)).result).toBe("acquired");
      });

      it("fails for the lane's owner once that instance is dead", async () => {
        const fence = await holdLane(store);
        await die(fence.instanceId);
        await expect(store.acquireLane(fence.lane, fence.instanceId)).rejects.toBeInstanceOf(InstanceOver);
      });

      it("has exactly one winner among many nodes", async () => {
        const lane = aLane();
        const stores = await Promise.all(Array.from({ length: 6 }, () => subject.connect()));
        let last = 0;
        for (let round = 0; round < 4; round++) {
          const claimants = await Promise.all(stores.map(() => register()));
          const results = await Promise.all(
            stores.map((each, index) => each.acquireLane(lane, claimants[index] as string)),
          );
          const winners = results.flatMap((result) => (result.result === "notLeader" ? [] : [result.fence]));
          expect(winners).toHaveLength(1);
          expect(winners[0]?.token).toBe(++last);
          if (round % 2 === 0) await store.retireInstance(winners[0]?.instanceId ?? "");
          else await die(winners[0]?.instanceId ?? "");
        }
        await Promise.all(stores.map((each) => each.close()));
      });
    });

    describe("releasing a lane", () => {
      it("requires its current owner and fencing token", async () => {
        const fence = await holdLane(store);
        expect(await store.releaseLane({ ...fence, token: fence.token + 1 })).toBe(false);
        expect(await store.releaseLane({ ...fence, instanceId: randomUUID() })).toBe(false);
        expect(await store.releaseLane({ ...fence, lane: aLane() })).toBe(false);
        expect(await store.releaseLane(fence)).toBe(true);
        expect(await store.releaseLane(fence)).toBe(false);
      });

      it("happens for all lanes of a retired instance, once", async () => {
        const id = await register();
        const lanes = [aLane(1), aLane(2), aLane(1)];
        for (const lane of lanes) await store.acquireLane(lane, id);
        const kept = await holdLane(store);
        expect(await store.retireInstance(id)).toBe(3);
        expect(await store.retireInstance(id)).toBe(0);
        expect(await find(id)).toMatchObject({ dead: true, lanes: 0 });
        expect(await store.loadLane(kept)).not.toBeNull();
      });
    });

    describe("claiming many lanes", () => {
      const lanesOf = (count: number): readonly Lane[] =>
        Array.from({ length: count }, (_, index) => aLane(1 + (index % 3)));

      it("acquires new lanes up to the limit", async () => {
        const [id, other] = [await register(), await register()];
        const lanes = lanesOf(10);
        const first = await store.claimLanes(lanes, id, 4);
        expect(first).toHaveLength(4);
        expect(first.every(({ result, fence }) => result === "acquired" && fence.token === 1)).toBe(true);
        const rest = await store.claimLanes(lanes, other, 100);
        expect(rest).toHaveLength(6);
        const held = [...first, ...rest].map(({ fence }) => fence.lane).sort(compareLanes);
        expect(held).toEqual([...lanes].sort(compareLanes));
      });

      it("counts lanes that the instance already owns", async () => {
        const id = await register();
        const lanes = lanesOf(6);
        const first = await store.claimLanes(lanes, id, 3);
        const again = await store.claimLanes(lanes, id, 3);
        expect(again.map(({ result }) => result)).toEqual(["kept", "kept", "kept"]);
        expect(again.map(({ fence }) => fence).sort((a, b) => compareLanes(a.lane, b.lane))).toEqual(
          first.map(({ fence }) => fence).sort((a, b) => compareLanes(a.lane, b.lane)),
        );
        expect(await store.claimLanes(lanes, id, 5)).toHaveLength(5);
      });

      it("takes over only from dead instances", async () => {
        const [dying, living, heir] = [await register(), await register(), await register()];
        const lanes = lanesOf(6);
        await store.claimLanes(lanes.slice(0, 3), dying, 10);
        await store.claimLanes(lanes.slice(3), living, 10);
        await die(dying);
        const taken = await store.claimLanes(lanes, heir, 10);
        expect(taken.map(({ fence }) => fence.lane).sort(compareLanes)).toEqual(
          [...lanes.slice(0, 3)].sort(compareLanes),
        );
        expect(taken.every(({ result, fence }) => result === "takenOver" && fence.token === 2)).toBe(true);
      });

      it("takes nothing with a limit of 0, or without lanes", async () => {
        const id = await register();
        expect(await store.claimLanes([aLane()], id, 0)).toEqual([]);
        expect(await store.claimLanes([], id, 5)).toEqual([]);
      });

      it("acquires no lane twice if several instances claim at the same time", async () => {
        const lanes = lanesOf(40);
        const stores = await Promise.all(Array.from({ length: 5 }, () => subject.connect()));
        const claims = await Promise.all(stores.map(async (each) => each.claimLanes(lanes, await register(), 8)));
        const held = claims.flat().map(({ fence }) => `${fence.lane.chainId}:${fence.lane.signer}`);
        expect(new Set(held).size).toBe(held.length);
        expect(Math.max(...claims.map((claim) => claim.length))).toBeLessThanOrEqual(8);
        const sweeper = await store.claimLanes(lanes, await register(), 100);
        expect(held.length + sweeper.length).toBe(40);
        await Promise.all(stores.map((each) => each.close()));
      });
    });

    describe("the list of leases", () => {
      it("shows the owner, token and start time of each lane", async () => {
        const held = await holdLane(store);
        const released = await holdLane(store);
        await store.releaseLane(released);
        const orphaned = await holdLane(store);
        await die(orphaned.instanceId);
        const leases = await store.leases();
        const of = (lane: Lane) => leases.find((lease) => compareLanes(lease.lane, lane) === 0);
        expect(of(held.lane)).toMatchObject({ token: 1, owner: { instanceId: held.instanceId } });
        expect(of(held.lane)?.acquiredAt).toBeInstanceOf(Date);
        expect(of(released.lane)).toMatchObject({ token: 1, owner: null });
        expect(of(orphaned.lane)).toMatchObject({ token: 1, owner: null });
      });
    });

    describe("the fence of a commit", () => {
      it("refuses an owner whose lease has expired", async () => {
        const fence = await holdLane(store);
        await subject.expire(fence.instanceId);
        const intent = anIntent(fence.lane);
        const items = [{ intent }];
        expect(await commitOne(store, { kind: "allocate", fence, floor: 0, items })).toEqual({ status: "fenced" });
        expect(await store.transaction(intent.txId)).toBeNull();
      });

      it("refuses another token, another instance or another lane", async () => {
        const fence = await holdLane(store);
        const stranger = await register();
        const wrong = [
          { ...fence, token: fence.token - 1 },
          { ...fence, token: fence.token + 1 },
          { ...fence, instanceId: stranger },
          { ...fence, lane: aLane() },
        ];
        const outcomes = await outcomesOf(
          store,
          wrong.map((fence) => ({ kind: "suspend", fence, suspended: true }) as const),
        );
        expect(outcomes).toEqual(wrong.map(() => ({ status: "fenced" })));
        expect(await store.loadLane(fence)).toMatchObject({ suspendedBy: null });
      });

      it("accepts the new owner and refuses the old owner", async () => {
        const old = await holdLane(store);
        await store.releaseLane(old);
        const fence = await holdLane(store, old.lane);
        const intents = [anIntent(old.lane), anIntent(old.lane)] as const;
        const outcomes = await outcomesOf(store, [
          { kind: "allocate", fence: old, floor: 0, items: [{ intent: intents[0] }] },
          { kind: "allocate", fence, floor: 0, items: [{ intent: intents[1] }] },
        ]);
        expect(outcomes).toMatchObject([{ status: "fenced" }, { status: "allocated", items: [{ nonce: 0 }] }]);
        expect(await store.transaction(intents[0].txId)).toBeNull();
        expect(await allocate(store, fence, [anIntent(old.lane)])).toMatchObject([{ nonce: 1 }]);
      });
    });
  });
}
