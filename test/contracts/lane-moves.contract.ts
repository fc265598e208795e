import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fence, Lane } from "../../src/domain/lane.ts";
import type { DeparturePage, MoveWish } from "../../src/ports/lane-move-store.ts";
import {
  aLane,
  allocate,
  anIntent,
  BY_ANYBODY,
  commitOne,
  confirm,
  holdLane,
  nextUuid,
  uniqueHash,
} from "../support/lane-samples.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

const BECAUSE = { actor: "operator:anna", reason: "a cell of its own" };

/**
 * The contract of every LaneMoveStore: of two cells at most one gives a lane's nonces, whatever step is repeated, left
 * out or made in the wrong order.
 */
export function laneMovesContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`LaneMoveStore contract: ${name}`, () => {
    const subjects: StoreSubject[] = [];
    let from: Store;
    let to: Store;

    beforeAll(async () => {
      for (let cell = 0; cell < 2; cell++) subjects.push(await create());
      [from, to] = (await Promise.all(subjects.map((subject) => subject.connect()))) as [Store, Store];
    });
    afterAll(async () => {
      await Promise.all([from, to].map((store) => store.close()));
      await Promise.all(subjects.map((subject) => subject.close()));
    });

    const step = async (store: Store, lane: Lane, wish: MoveWish) =>
      (await store.moveLane(lane, wish, BECAUSE)).standing;
    const expectedAt = async (store: Store, lane: Lane) =>
      (await step(store, lane, { step: "expect", moveId: nextUuid() })).arrivesBy as string;
    const placeOf = async (store: Store, lane: Lane) => (await store.lanes(lane.signer))[0]?.place;
    const given = async (store: Store, fence: Fence, requestId = randomUUID() as string) =>
      (await allocate(store, fence, [anIntent(fence.lane, { requestId })]))[0];

    async function pagesOf(store: Store, lane: Lane, moveId: string): Promise<readonly DeparturePage[]> {
      const pages: DeparturePage[] = [];
      for (let after: string | null = null; pages.length === 0 || after !== null; ) {
        const page = await store.departurePage(lane, moveId, after);
        if (page === null) throw new Error("the lane has not left");
        pages.push(page);
        after = page.next;
      }
      return pages;
    }

    /** A lane with this many confirmed transactions that left for the other cell. */
    async function leftWith(transactions: number) {
      const fence = await holdLane(from);
      const { lane } = fence;
      const requestIds = Array.from({ length: transactions }, (_, at) => `order-${at}`);
      for (const requestId of requestIds) await confirm(from, fence, {}, anIntent(lane, { requestId }));
      const moveId = await expectedAt(to, lane);
      expect(await step(from, lane, { step: "leave", moveId })).toMatchObject({ place: "LEFT" });
      return { lane, moveId, requestIds, pages: await pagesOf(from, lane, moveId), fence };
    }

    async function arrived(transactions: number) {
      const left = await leftWith(transactions);
      for (const page of left.pages) await step(to, left.lane, { step: "arrive", moveId: left.moveId, page });
      return left;
    }

    // protects [Cells] src/domain/cluster/lane-move.ts, src/domain/ledger/allocate.ts
    it("hands a lane over: the other cell goes on at its next nonce, this one gives none any more", async () => {
      const { lane, requestIds } = await arrived(4);
      const [here, there] = [await holdLane(from, lane), await holdLane(to, lane)];
      expect(await given(from, here)).toEqual({ result: "moved", place: "LEFT" });
      expect(await to.loadLane(there)).toMatchObject({ cursor: 4, place: "HERE", reconciled: false });
      await commitOne(to, { kind: "reconcile", fence: there, floor: 4 });
      for (const requestId of requestIds) expect(await given(to, there, requestId)).toEqual({ result: "spent" });
      expect(await given(to, there)).toMatchObject({ result: "created", nonce: 4 });
      expect([await placeOf(from, lane), await placeOf(to, lane)]).toEqual(["LEFT", "HERE"]);
    });

    // protects [Cells] src/adapters/postgres/statements/lane-move.ts
    it("gives no nonce after an arrival before the lane was compared with the chain", async () => {
      const { lane } = await arrived(1);
      const there = await holdLane(to, lane);
      expect(await given(to, there)).toEqual({ result: "held" });
      await commitOne(to, { kind: "reconcile", fence: there, floor: 3 });
      expect(await given(to, there)).toMatchObject({ nonce: 3 });
    });

    it("ends the term of the lane's owner with each change of place", async () => {
      const fence = await holdLane(from);
      const moveId = await expectedAt(to, fence.lane);
      await given(from, fence);
      await step(from, fence.lane, { step: "leave", moveId });
      expect(await commitOne(from, { kind: "align", fence, floor: 9 })).toEqual({ status: "fenced" });
    });

    // protects [Cells] src/domain/ledger/allocate.ts, src/domain/ledger/reserve.ts
    it("gives a leaving lane's nonces to nothing new, and lets what it has go on", async () => {
      const before = await holdLane(from);
      const { lane } = before;
      const open = anIntent(lane, { requestId: "open" });
      await allocate(from, before, [open]);
      const waiting = anIntent(lane);
      await subjects[0]?.intake(waiting);
      const moveId = await expectedAt(to, lane);
      const leaving = await from.moveLane(lane, { step: "leave", moveId }, BECAUSE);
      expect(leaving).toMatchObject({ standing: { place: "LEAVING" }, open: { transactions: 1, intents: 1 } });
      expect(await from.departurePage(lane, moveId, null)).toBeNull();
      const fence = await holdLane(from, lane);
      expect(await given(from, fence)).toEqual({ result: "moved", place: "LEAVING" });
      const wanted = { floor: null, reservationId: nextUuid(), requestId: null, ...BY_ANYBODY, ttlMs: 60_000 } as const;
      expect(await commitOne(from, { kind: "reserve", fence, ...wanted })).toMatchObject({
        result: { result: "moved" },
      });
      expect(await given(from, fence, "open")).toMatchObject({ result: "duplicate" });
      const [row] = await from.loadIntake([lane], 1, []);
      const items = [{ intent: waiting, intakeId: row?.intakeId as number }];
      const outcome = await commitOne(from, { kind: "allocate", fence, floor: null, items });
      expect(outcome).toMatchObject({ items: [{ result: "created", nonce: 1 }] });
    });

    it("serves a lane again whose leave was called off, but not one that has left", async () => {
      const fence = await holdLane(from);
      await given(from, fence);
      const moveId = await expectedAt(to, fence.lane);
      await step(from, fence.lane, { step: "leave", moveId });
      expect(await step(from, fence.lane, { step: "stay", moveId })).toMatchObject({ place: "HERE" });
      expect(await given(from, await holdLane(from, fence.lane))).toMatchObject({ nonce: 1 });
      const left = await leftWith(1);
      await expect(step(from, left.lane, { step: "stay", moveId: left.moveId })).rejects.toThrow(
        "cannot be called off",
      );
    });

    // protects [Cells] src/domain/cluster/lane-move.ts
    it("takes each page over once and in order, whatever is repeated", async () => {
      const { lane, moveId, pages } = await leftWith(8);
      const arrive = (page: DeparturePage | undefined) =>
        step(to, lane, { step: "arrive", moveId, page: page as DeparturePage });
      const last = pages.at(-1);
      expect(pages.length).toBeGreaterThan(2);
      expect(await arrive(last)).toMatchObject({ place: "EXPECTED", carried: null });
      for (const page of pages) {
        const standing = await arrive(page);
        expect(await arrive(page)).toEqual(standing);
      }
      expect(await placeOf(to, lane)).toBe("HERE");
      expect(await arrive(pages[0])).toMatchObject({ place: "HERE" });
      const there = await holdLane(to, lane);
      await commitOne(to, { kind: "reconcile", fence: there, floor: 8 });
      await confirm(to, there);
      expect(await arrive(last)).toMatchObject({ place: "HERE" });
      expect(await given(to, there)).toMatchObject({ nonce: 9 });
    });

    // protects [Cells] src/domain/cluster/lane-move.ts
    it("opens no other cell, and no cell twice, by the same pages", async () => {
      const { lane, moveId, pages } = await arrived(2);
      const next = await expectedAt(from, lane);
      const there = await holdLane(to, lane);
      await commitOne(to, { kind: "reconcile", fence: there, floor: 2 });
      await confirm(to, there);
      await step(to, lane, { step: "leave", moveId: next });
      for (const page of pages) {
        const again = step(to, lane, { step: "arrive", moveId, page });
        await expect(again).rejects.toThrow("not expected here by this move");
      }
      for (const page of await pagesOf(to, lane, next)) await step(from, lane, { step: "arrive", moveId: next, page });
      const back = await holdLane(from, lane);
      await commitOne(from, { kind: "reconcile", fence: back, floor: 3 });
      expect(await given(from, back, "order-1")).toMatchObject({ result: "duplicate" });
      expect(await given(from, back)).toMatchObject({ nonce: 3 });
    });

    // protects [Cells] src/domain/cluster/lane-move.ts
    it("lets no lane leave that it never served: the destination would serve it beside the cell that does", async () => {
      const fence = await holdLane(from);
      const moveId = await expectedAt(to, fence.lane);
      await expect(step(from, fence.lane, { step: "leave", moveId })).rejects.toThrow("never served");
    });

    it("expects no lane that it serves, and the same one under one id", async () => {
      const fence = await holdLane(to);
      const [first, second] = [await expectedAt(to, fence.lane), await expectedAt(to, fence.lane)];
      expect(second).toBe(first);
      const used = await holdLane(to);
      await given(to, used);
      await expect(expectedAt(to, used.lane)).rejects.toThrow("nothing can arrive here");
    });

    // protects [Cells] src/domain/cluster/lane-move.ts
    it("lets no lane leave twice, by another move, or while commits may be lost", async () => {
      const { lane } = await leftWith(1);
      await expect(step(from, lane, { step: "leave", moveId: nextUuid() })).rejects.toThrow("another cell gives");
      const there = await holdLane(to);
      const moveId = await expectedAt(from, there.lane);
      await confirm(to, there);
      await step(to, there.lane, { step: "leave", moveId });
      for (const page of await pagesOf(to, there.lane, moveId))
        await step(from, there.lane, { step: "arrive", moveId, page });
      // It arrived, and was not compared with the chain yet.
      await expect(step(from, there.lane, { step: "leave", moveId: nextUuid() })).rejects.toThrow("may lack commits");
      await expect(step(from, there.lane, { step: "leave", moveId })).rejects.toThrow("arrived here by this move");
    });

    it("takes no lane over from another chain with the same id", async () => {
      const [here, there] = [await holdLane(from, aLane(77)), await holdLane(to, aLane(77))];
      await commitOne(from, { kind: "identify", fence: here, genesisHash: uniqueHash() });
      await commitOne(to, { kind: "identify", fence: there, genesisHash: uniqueHash() });
      const moveId = await expectedAt(to, here.lane);
      await confirm(from, here);
      await step(from, here.lane, { step: "leave", moveId });
      const [page] = await pagesOf(from, here.lane, moveId);
      const wish = { step: "arrive", moveId, page: page as DeparturePage } as const;
      await expect(step(to, here.lane, wish)).rejects.toThrow("another chain");
    });

    // protects [Cells] src/domain/ledger/standing.ts
    it("freezes the next nonce of a lane that has left, whatever the chain counts", async () => {
      const { lane } = await leftWith(2);
      const fence = await holdLane(from, lane);
      expect(await commitOne(from, { kind: "align", fence, floor: 90 })).toEqual({ status: "aligned", cursor: 2 });
      const decision = { action: "realign", ...BECAUSE };
      expect(await commitOne(from, { kind: "realign", fence, floor: 0, decision })).toMatchObject({ cursor: 2 });
      expect(await from.loadLane(fence)).toMatchObject({ cursor: 2, place: "LEFT" });
    });
  });
}
