import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lane } from "../../src/domain/lane.ts";
import type { State } from "../../src/domain/transaction/transitions.ts";
import type { LaneRecord, ListFilter } from "../../src/ports/query-store.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anIntent,
  apply,
  commitOne,
  confirm,
  holdLane,
  mine,
  step,
  uniqueAddress,
  uniqueHash,
} from "../support/lane-samples.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

/**
 * The contract of every QueryStore: any node can answer, pages neither miss nor repeat rows, and the feed is in order.
 */
export function queryStoreContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`QueryStore contract: ${name}`, () => {
    let subject: StoreSubject;
    let store: Store;
    beforeAll(async () => {
      subject = await create();
      store = await subject.connect();
    });
    afterAll(async () => {
      await store.close();
      await subject.close();
    });

    const ids = async (filter: Partial<ListFilter>) =>
      (await store.transactions({ order: "oldest", limit: 100, ...filter })).map(({ txId }) => txId);

    /** Creates one lane with a transaction in every state. */
    const populate = async () => {
      const fence = await holdLane(store);
      const { lane } = fence;
      const old = (await confirm(store, fence, { blockNumber: 1 })).intent.txId;
      await commitOne(store, { kind: "unwatch", fence, throughBlock: 1 });
      const confirmed = (await confirm(store, fence, { blockNumber: 2 })).intent.txId;
      const mined = (await mine(store, fence, { blockNumber: 3 })).intent.txId;
      const [signed, allocated, waiting] = [anIntent(lane), anIntent(lane), anIntent(lane)] as const;
      const attempts = [anAttempt(1), anAttempt(2)] as const;
      await allocate(store, fence, [signed, allocated]);
      await apply(store, fence, [
        step(signed.txId, AT.allocated, "sign", { attempt: attempts[0] }),
        step(signed.txId, AT.pending, "resubmit", { attempt: attempts[1] }),
      ]);
      const refused = anIntent(lane);
      await subject.intake(refused);
      const [row] = await store.loadIntake([lane], 1);
      const results = [{ intakeId: row?.intakeId ?? 0, result: "refused", event: "refuse", reason: "no" } as const];
      await commitOne(store, { kind: "settleIntake", fence, results });
      await subject.intake(waiting);
      return {
        fence,
        lane,
        attempts,
        old,
        confirmed,
        mined,
        signed: signed.txId,
        allocated: allocated.txId,
        refused: refused.txId,
        waiting: waiting.txId,
      };
    };

    it("returns null for unknown ids, well-formed or not", async () => {
      for (const id of [randomUUID(), "", "nonsense", "0x12", "'; DROP TABLE fencepost.lane"]) {
        expect(await store.transaction(id)).toBeNull();
        expect(await store.history(id)).toEqual([]);
      }
      expect(await store.transactionByRequest(aLane(), "nothing")).toBeNull();
    });

    it("finds a request id only on its own lane", async () => {
      const fence = await holdLane(store);
      const intent = anIntent(fence.lane, { requestId: "by-request" });
      await allocate(store, fence, [intent]);
      expect((await store.transactionByRequest(fence.lane, "by-request"))?.txId).toBe(intent.txId);
      expect(await store.transactionByRequest(fence.lane, "By-Request")).toBeNull();
      expect(await store.transactionByRequest({ ...fence.lane, chainId: 77 }, "by-request")).toBeNull();
      expect(await store.transactionByRequest(aLane(), "by-request")).toBeNull();
    });

    it("finds the transaction at a nonce only on its own lane", async () => {
      const fence = await holdLane(store);
      const [first, second] = [anIntent(fence.lane), anIntent(fence.lane)];
      await allocate(store, fence, [first, second]);
      const nonce = (await store.transaction(second.txId))?.nonce as number;
      expect((await store.transactionAt(fence.lane, nonce))?.txId).toBe(second.txId);
      expect((await store.transactionAt(fence.lane, nonce - 1))?.txId).toBe(first.txId);
      expect(await store.transactionAt(fence.lane, nonce + 1)).toBeNull();
      expect(await store.transactionAt({ ...fence.lane, chainId: 77 }, nonce)).toBeNull();
    });

    it("returns the hash of the first attempt of each stored transaction", async () => {
      const { attempts, signed, allocated, refused, waiting } = await populate();
      const found = await store.firstHashes([signed, allocated, refused, waiting, randomUUID()]);
      expect(new Map(found.map(({ txId, ...rest }) => [txId, rest]))).toEqual(
        new Map([
          [signed, { state: "TRACKING", txHash: attempts[0].txHash }],
          [allocated, { state: "ALLOCATED", txHash: null }],
          [refused, { state: "FAILED_FINAL", txHash: null }],
        ]),
      );
      expect(await store.firstHashes([])).toEqual([]);
    });

    // protects [Replicas that embed the library] src/adapters/postgres/stores/queries.ts
    it("returns the hash of the first attempt for an alias of a transaction id", async () => {
      const { fence, attempts, signed } = await populate();
      const named = anIntent(fence.lane);
      await subject.intake(named);
      const rows = await store.loadIntake([fence.lane], 100);
      const intakeId = rows.find(({ intent }) => intent.txId === named.txId)?.intakeId as number;
      await commitOne(store, { kind: "settleIntake", fence, results: [{ intakeId, result: "alias", of: signed }] });
      expect(await store.firstHashes([named.txId])).toEqual([
        { txId: named.txId, state: "TRACKING", txHash: attempts[0].txHash },
      ]);
    });

    it("lists transactions by signer in ascending and descending order", async () => {
      const { lane, old, confirmed, mined, signed, allocated, refused, waiting } = await populate();
      const all = [old, confirmed, mined, signed, allocated, refused, waiting].sort();
      expect(await ids({ signer: lane.signer })).toEqual(all);
      expect(await ids({ signer: lane.signer, order: "newest" })).toEqual([...all].reverse());
      expect(await ids({ signer: lane.signer, chainId: lane.chainId })).toEqual(all);
      expect(await ids({ signer: lane.signer, chainId: 55 })).toEqual([]);
      expect(await ids({ signer: uniqueAddress() })).toEqual([]);
    });

    it("filters transactions by state, with and without a signer", async () => {
      const { lane, old, confirmed, mined, signed, allocated, refused, waiting } = await populate();
      const expected: Record<State, readonly string[]> = {
        CREATED: [waiting],
        ALLOCATED: [allocated],
        TRACKING: [mined, signed],
        CONFIRMED: [old, confirmed],
        FAILED_FINAL: [refused],
        STUCK: [],
      };
      for (const [state, wanted] of Object.entries(expected) as [State, readonly string[]][]) {
        expect(await ids({ state, signer: lane.signer })).toEqual([...wanted].sort());
        const everywhere = await ids({ state });
        expect(everywhere.filter((id) => wanted.includes(id))).toEqual([...wanted].sort());
        expect(await ids({ state, chainId: 56 })).toEqual([]);
      }
    });

    it("finds transactions by any attempt's hash, and by request id", async () => {
      const { lane, attempts, signed } = await populate();
      for (const { txHash } of attempts) {
        expect(await ids({ txHash })).toEqual([signed]);
        expect(await ids({ txHash, signer: lane.signer, state: "TRACKING" })).toEqual([signed]);
        expect(await ids({ txHash, state: "CONFIRMED" })).toEqual([]);
        expect(await ids({ txHash, after: signed })).toEqual([]);
      }
      expect(await ids({ txHash: uniqueHash() })).toEqual([]);
      const fences = [await holdLane(store), await holdLane(store)];
      const intents = fences.map((fence) => anIntent(fence.lane, { requestId: "shared" }));
      for (const [index, fence] of fences.entries()) await allocate(store, fence, intents.slice(index, index + 1));
      expect(await ids({ requestId: "shared" })).toEqual(intents.map(({ txId }) => txId));
      expect(await ids({ requestId: "shared", order: "newest", limit: 1 })).toEqual([intents[1]?.txId]);
      expect(await ids({ requestId: "shared", signer: fences[0]?.lane.signer ?? "0x" })).toEqual([intents[0]?.txId]);
      expect(await ids({ requestId: "shared", after: intents[0]?.txId ?? "" })).toEqual([intents[1]?.txId]);
    });

    it("returns pages without missing or repeated items, with every filter and order", async () => {
      const { lane } = await populate();
      const fence = await holdLane(store, { chainId: 3, signer: lane.signer });
      await allocate(
        store,
        fence,
        Array.from({ length: 9 }, () => anIntent(fence.lane)),
      );
      await subject.intake(anIntent(fence.lane), anIntent(fence.lane));
      const filters: Partial<ListFilter>[] = [
        {},
        { chainId: 3 },
        { signer: lane.signer },
        { signer: lane.signer, chainId: 3 },
        { state: "ALLOCATED" },
        { state: "CONFIRMED" },
        { state: "CREATED" },
        { signer: lane.signer, state: "ALLOCATED" },
      ];
      for (const filter of filters) {
        for (const order of ["oldest", "newest"] as const) {
          const whole = await ids({ ...filter, order, limit: 1_000 });
          expect(whole).toEqual(order === "oldest" ? [...whole].sort() : [...whole].sort().reverse());
          const paged: string[] = [];
          for (;;) {
            const after = paged.at(-1);
            const page = await ids({ ...filter, order, limit: 3, ...(after === undefined ? {} : { after }) });
            if (page.length === 0) break;
            paged.push(...page);
          }
          expect(paged).toEqual(whole);
        }
      }
    });

    it("counts transactions by state and result", async () => {
      const before = await store.census();
      await populate();
      const after = await store.census();
      const grown = (state: State) => after.states[state] - before.states[state];
      expect([grown("CREATED"), grown("ALLOCATED"), grown("TRACKING"), grown("CONFIRMED")]).toEqual([1, 1, 2, 2]);
      expect([grown("FAILED_FINAL"), grown("STUCK")]).toEqual([1, 0]);
      expect(after.watched.FAILED_FINAL).toBe(before.watched.FAILED_FINAL);
      expect(after.watched.CONFIRMED - before.watched.CONFIRMED).toBe(1);
      expect(after.oldestPendingAgeMs).toBeGreaterThanOrEqual(0);
      expect(after.suspendedLanes).toBe(before.suspendedLanes);
    });

    it("describes each lane with its next nonce, owner and counts", async () => {
      const { fence, lane, mined } = await populate();
      const [row, ...others] = await store.lanes(lane.signer);
      expect(others).toEqual([]);
      const head = await store.transaction(mined);
      expect(row).toMatchObject({
        lane,
        cursor: 5,
        suspendedBy: null,
        token: fence.token,
        owner: { instanceId: fence.instanceId },
        pending: 4,
        confirmed: 2,
        failed: 1,
        stuck: 0,
      });
      expect(row?.headOfLine).toEqual({
        txId: mined,
        nonce: 2,
        state: "TRACKING",
        createdAt: head?.createdAt,
        held: false,
      });
      expect(row?.oldestPendingAt).toEqual(head?.createdAt);
      expect(row?.acquiredAt).toBeInstanceOf(Date);
      expect((await store.lanesAfter(null, 1_000)).filter((each) => each.lane.signer === lane.signer)).toEqual([row]);
    });

    it("returns pages of lanes by signer and chain, without missing or repeated items", async () => {
      const signer = uniqueAddress();
      for (const chainId of [7, 3, 40]) await holdLane(store, { chainId, signer });
      await holdLane(store);
      const keysOf = (lanes: readonly LaneRecord[]) => lanes.map(({ lane }) => `${lane.signer} ${lane.chainId}`);
      const all = keysOf(await store.lanesAfter(null, 1_000));
      expect(all.filter((key) => key.startsWith(signer))).toEqual([3, 7, 40].map((chainId) => `${signer} ${chainId}`));
      const paged: string[] = [];
      for (let after: Lane | null = null; ; ) {
        const page: readonly LaneRecord[] = await store.lanesAfter(after, 2);
        expect(page.length).toBeLessThanOrEqual(2);
        after = page.at(-1)?.lane ?? null;
        if (after === null) break;
        paged.push(...keysOf(page));
      }
      expect(paged).toEqual(all);
      expect(new Set(paged).size).toBe(paged.length);
    });

    it("describes an idle lane, and a lane without an owner", async () => {
      const fence = await holdLane(store, aLane(5));
      await store.releaseLane(fence);
      expect(await store.lanes(fence.lane.signer)).toMatchObject([
        { cursor: null, owner: null, token: 1, pending: 0, confirmed: 0, oldestPendingAt: null, headOfLine: null },
      ]);
      expect(await store.lanes(uniqueAddress())).toEqual([]);
    });

    it("begins the feed at 1, in epoch 1, with nothing truncated", async () => {
      const fresh = await create();
      const other = await fresh.connect();
      const beginning = { epoch: 1, lastSeq: 0, truncatedThrough: 0, epochStartsAfter: 0 };
      expect(await other.feed(0, 10)).toEqual({ ...beginning, items: [] });
      const { intent } = await confirm(other, await holdLane(other));
      const items = [{ seq: 1, epoch: 1, txId: intent.txId, state: "CONFIRMED" }];
      expect(await other.feed(0, 10)).toMatchObject({ ...beginning, lastSeq: 1, items });
      await other.close();
      await fresh.close();
    });

    it("responds to a ping", async () => {
      await expect(store.ping()).resolves.toBeUndefined();
    });
  });
}
