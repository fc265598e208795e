import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fence } from "../../src/domain/lane.ts";
import { EVERY_OUTCOME } from "../../src/domain/webhooks/subscriber.ts";
import { HistoryChanged, type LaneWrite } from "../../src/ports/lane-store.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anInstance,
  anIntent,
  apply,
  aReceipt,
  BY_ANYBODY,
  commitOne,
  confirm,
  holdLane,
  nonces,
  outcomesOf,
  step,
} from "../support/lane-samples.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

/** The effects of a changed database history on writers, tested against the double and the real store. */
export function epochsContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`epochs after a database history change: ${name}`, () => {
    let subject: StoreSubject;
    let store: Store;
    let other: Store;

    beforeEach(async () => {
      subject = await create();
      [store, other] = await Promise.all([subject.connect(), subject.connect()]);
    });
    afterEach(async () => {
      await Promise.all([store.close(), other.close()]);
      await subject.close();
    });

    /**
     * Changes the database history. Then acquires the same lane again, with a new fencing token that is valid under the
     * new history.
     */
    async function heirOf({ lane }: Fence): Promise<Fence> {
      await subject.changeHistory();
      return holdLane(store, lane);
    }
    const reconcile = (fence: Fence, floor: number): Promise<unknown> =>
      commitOne(store, { kind: "reconcile", fence, floor });
    const suspend = (fence: Fence, suspended: boolean): Promise<unknown> =>
      commitOne(store, { kind: "suspend", fence, suspended });

    it("begin once per change", async () => {
      await holdLane(store);
      await holdLane(other);
      const { epoch } = await store.feed(0, 1);
      await subject.changeHistory();
      const registered = [];
      for (const each of [store, other, store]) registered.push(await each.registerInstance(anInstance()));
      expect(registered).toEqual([true, false, false].map((begun) => ({ epoch: epoch + 1, begun, mayHaveLost: true })));
      expect(await other.feed(0, 1)).toMatchObject({ epoch: epoch + 1 });
    });

    it("begin once even if two nodes register at the same time", async () => {
      await Promise.all([holdLane(store), holdLane(other)]);
      await subject.changeHistory();
      const registered = await Promise.all([store, other].map((each) => each.registerInstance(anInstance())));
      expect(registered.filter(({ begun }) => begun)).toHaveLength(1);
      expect(new Set(registered.map(({ epoch }) => epoch)).size).toBe(1);
    });

    // protects [The feed] src/adapters/postgres/statements/feed.ts
    it("use feed numbers above every number that was read before", async () => {
      const fence = await holdLane(store);
      await confirm(store, fence);
      const { lastSeq } = await store.feed(0, 1);
      const heir = await heirOf(fence);
      const feed = await store.feed(0, 1);
      expect(feed.epochStartsAfter).toBeGreaterThanOrEqual(lastSeq);
      expect(feed.lastSeq).toBe(feed.epochStartsAfter);
      await reconcile(heir, 1);
      await suspend(heir, false);
      await confirm(store, heir);
      const { epoch, items } = await store.feed(0, 10);
      expect(items.map((item) => [item.seq, item.epoch])).toEqual([
        [lastSeq, epoch - 1],
        [feed.lastSeq + 1, epoch],
      ]);
    });

    // protects [Webhooks] src/adapters/postgres/statements/subscriber.ts
    it("leave out feed numbers, which are no backlog of a subscriber", async () => {
      const fence = await holdLane(store);
      await confirm(store, fence);
      const known = { name: "books", url: "https://books.example/", filter: EVERY_OUTCOME, secretId: "5f1d7a84" };
      const subscriberId = randomUUID();
      await store.addSubscriber({ ...known, subscriberId, giveUpAfterMs: 60_000, createdBy: null, after: 0 }, "me");
      const behind = async () => (await store.subscribers()).map((each) => each.behind);
      expect(await behind()).toEqual([1]);
      const heir = await heirOf(fence);
      expect(await behind()).toEqual([1]);
      await reconcile(heir, 1);
      await suspend(heir, false);
      await confirm(store, heir);
      expect(await behind()).toEqual([2]);
      const skip = { action: "replay", after: 1 } as const;
      await store.changeSubscriber({
        seen: { subscriberId, filter: EVERY_OUTCOME },
        change: skip,
        actor: "me",
        reason: null,
      });
      expect(await behind()).toEqual([1]);
      // It is not announced yet, so a replay leaves the earlier epoch.
      expect((await store.subscribers())[0]).toMatchObject({ epoch: 1, position: 1 });
    });

    it("end every earlier lane ownership and node instance", async () => {
      const fence = await holdLane(other);
      await subject.changeHistory();
      const heir = anInstance();
      await store.registerInstance(heir);
      const writes: readonly LaneWrite[] = [{ kind: "align", fence, floor: 9 }];
      await expect(other.commit(writes)).rejects.toBeInstanceOf(HistoryChanged);
      await expect(other.renewInstance(fence.instanceId, 60_000)).rejects.toBeInstanceOf(HistoryChanged);
      await expect(other.acquireLane(fence.lane, fence.instanceId)).rejects.toBeInstanceOf(HistoryChanged);
      await expect(other.declareDead(heir.instanceId, 1, "stood-still")).rejects.toBeInstanceOf(HistoryChanged);
      expect((await store.instances()).filter(({ dead }) => !dead)).toHaveLength(1);
      expect(await store.acquireLane(fence.lane, heir.instanceId)).toEqual({
        result: "takenOver",
        fence: { lane: fence.lane, instanceId: heir.instanceId, token: fence.token + 1 },
      });
    });

    it("fence writes that were planned before the change", async () => {
      const fence = await holdLane(store);
      await allocate(store, fence, [anIntent(fence.lane)]);
      await subject.changeHistory();
      await store.registerInstance(anInstance());
      expect(await commitOne(store, { kind: "align", fence, floor: 9 })).toEqual({ status: "fenced" });
      expect(await store.renewInstance(fence.instanceId, 60_000)).toBe(false);
    });

    it("stop a lane from allocating nonces and sending", async () => {
      const fence = await holdLane(store);
      const known = anIntent(fence.lane, { requestId: "known" });
      const signed = anIntent(fence.lane);
      await allocate(store, fence, [known, signed]);
      const attempt = anAttempt();
      await apply(store, fence, [step(signed.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
      const heir = await heirOf(fence);
      const repeated = { ...anIntent(fence.lane, { requestId: "known" }), fingerprint: known.fingerprint };
      expect(await allocate(store, heir, [anIntent(fence.lane), repeated], 7)).toMatchObject([
        { result: "held" },
        { result: "duplicate", existing: { txId: known.txId }, samePayload: true },
      ]);
      const claims = [
        step(known.txId, AT.allocated, "sign", { attempt: anAttempt(), claim: { ordinal: 1 } }),
        step(signed.txId, AT.pending, "resubmit", { claim: { ordinal: 1 } }),
      ];
      expect(await apply(store, heir, claims)).toEqual(["conflict", "conflict"]);
      const receipt = aReceipt(attempt.txHash);
      expect(await apply(store, heir, [step(signed.txId, AT.pending, "mine", { receipt })])).toEqual(["applied"]);
      expect(await store.loadLane(heir)).toMatchObject({ cursor: 2, reconciled: false, suspendedBy: "HISTORY" });
    });

    it("stop reservations of nonces", async () => {
      const fence = await holdLane(store);
      await allocate(store, fence, [anIntent(fence.lane)]);
      const reservationId = randomUUID();
      const reserving = { kind: "reserve", floor: null, requestId: null, ttlMs: 60_000, ...BY_ANYBODY } as const;
      await store.commit([{ ...reserving, fence, reservationId }]);
      const heir = await heirOf(fence);
      const intent = anIntent(fence.lane);
      const reservation = { reservationId, becomes: "SUBMITTED" } as const;
      const outcomes = await outcomesOf(store, [
        { ...reserving, fence: heir, reservationId: randomUUID() },
        { kind: "bind", fence: heir, nonce: 1, intent, attempt: anAttempt(), reason: "handed in", reservation },
      ]);
      expect(outcomes).toMatchObject([
        { status: "reserved", result: { result: "noCursor" } },
        { status: "bound", result: "held" },
      ]);
      expect(await store.transaction(intent.txId)).toBeNull();
    });

    it("let a lane continue once an operator has resumed the reconciled lane", async () => {
      const fence = await holdLane(store);
      await allocate(store, fence, [anIntent(fence.lane)]);
      const heir = await heirOf(fence);
      expect(await reconcile(heir, 4)).toEqual({ status: "reconciled", cursor: 4, suspendedBy: "HISTORY" });
      expect(await allocate(store, heir, [anIntent(fence.lane)])).toEqual([{ result: "held" }]);
      await suspend(heir, false);
      expect(nonces(await allocate(store, heir, [anIntent(fence.lane)]))).toEqual([4]);

      const again = await heirOf(heir);
      await suspend(again, false);
      expect(await allocate(store, again, [anIntent(fence.lane)])).toEqual([{ result: "held" }]);
      expect(await reconcile(again, 4)).toEqual({ status: "reconciled", cursor: 5, suspendedBy: null });
      expect(nonces(await allocate(store, again, [anIntent(fence.lane)]))).toEqual([5]);
    });

    it("keep their own suspension of a lane if an operator suspends the lane too", async () => {
      const fence = await holdLane(store);
      await suspend(fence, true);
      expect(await store.loadLane(fence)).toMatchObject({ suspendedBy: "OPERATOR", reconciled: true });
      expect(nonces(await allocate(store, fence, [anIntent(fence.lane)]))).toEqual([0]);
      const heir = await heirOf(fence);
      await reconcile(heir, 0);
      await suspend(heir, true);
      expect(await store.loadLane(heir)).toMatchObject({ suspendedBy: "HISTORY", reconciled: true });
      expect(await store.lanes(fence.lane.signer)).toMatchObject([{ suspendedBy: "HISTORY" }]);
      expect(await allocate(store, heir, [anIntent(fence.lane)])).toEqual([{ result: "held" }]);
    });

    it("also stop lanes that the database does not contain", async () => {
      await holdLane(store);
      await subject.changeHistory();
      const [unused, used] = [await holdLane(store, aLane()), await holdLane(store, aLane())];
      expect(await allocate(store, unused, [anIntent(unused.lane)])).toEqual([{ result: "held" }]);
      expect(await reconcile(unused, 0)).toEqual({ status: "reconciled", cursor: 0, suspendedBy: null });
      expect(await reconcile(used, 3)).toEqual({ status: "reconciled", cursor: 3, suspendedBy: "HISTORY" });
      await suspend(used, false);
      expect(await reconcile(used, 3), "known by now").toEqual({ status: "reconciled", cursor: 3, suspendedBy: null });
    });

    it("do not begin if a registration finds the same history", async () => {
      const before = await store.registerInstance(anInstance());
      expect(await other.registerInstance(anInstance())).toEqual({ ...before, begun: false });
      expect(await store.registerInstance(anInstance())).toEqual({ ...before, begun: false });
    });
  });
}
