import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isWithin, type Limits } from "../../src/domain/keys/principal.ts";
import type { Lane } from "../../src/domain/lane.ts";
import { STATES, type State, TRANSITIONS } from "../../src/domain/transaction/transitions.ts";
import type { NewCompletion } from "../../src/ports/lane-store.ts";
import type { CostFilter, CostPage, LaneRecord, ListFilter } from "../../src/ports/query-store.ts";
import {
  AT,
  aLane,
  allocate,
  anAttempt,
  anIntent,
  apply,
  aReceipt,
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

    // protects [Attacks] src/adapters/postgres/stores/pages.ts, src/adapters/postgres/rows/page-scopes.ts
    it("reads pages of an API key's lanes alone, as if there were no others", async () => {
      const { lane, attempts } = await populate();
      const others = await populate();
      const fence = await holdLane(store, { chainId: 3, signer: lane.signer });
      await allocate(store, fence, [anIntent(fence.lane), anIntent(fence.lane)]);
      await subject.intake(anIntent(fence.lane), anIntent(others.lane));
      const limits: readonly Limits[] = [
        { signers: new Set([lane.signer]), chains: null },
        { signers: new Set([lane.signer, others.lane.signer, uniqueAddress()]), chains: null },
        { signers: new Set([lane.signer, others.lane.signer]), chains: new Set([lane.chainId]) },
        { signers: null, chains: new Set([3, 55]) },
        { signers: new Set([uniqueAddress()]), chains: null },
      ];
      const everything = await store.transactions({ order: "oldest", limit: 1_000 });
      const states: Partial<ListFilter>[] = STATES.map((state) => ({ state }));
      for (const within of limits) {
        for (const filter of [{}, ...states, { chainId: 3 }, { signer: lane.signer }, { createdAfter: new Date(0) }]) {
          const expected = everything.filter(
            (record) =>
              isWithin(within, record.lane) &&
              (filter.state === undefined || record.state === filter.state) &&
              (filter.chainId === undefined || record.lane.chainId === filter.chainId) &&
              (filter.signer === undefined || record.lane.signer === filter.signer),
          );
          const oldest = expected.map(({ txId }) => txId);
          expect(await ids({ ...filter, within, limit: 1_000 })).toEqual(oldest);
          expect(await ids({ ...filter, within, order: "newest", limit: 1_000 })).toEqual([...oldest].reverse());
          expect(await ids({ ...filter, within, limit: 2 })).toEqual(oldest.slice(0, 2));
        }
        const { items } = await store.costs({ within, order: "oldest", limit: 1_000 });
        const spent = everything.filter((record) => isWithin(within, record.lane) && record.intakeId === undefined);
        expect(items.map(({ txId }) => txId).sort()).toEqual(spent.map(({ txId }) => txId).sort());
        const hidden = !isWithin(within, lane);
        expect(await ids({ txHash: attempts[0].txHash, within })).toHaveLength(hidden ? 0 : 1);
        const known = (await store.lanesAfter(null, 1_000)).filter((record) => isWithin(within, record.lane));
        expect(await store.lanesAfter(null, 1_000, { within })).toEqual(known);
        expect(await store.lanesAfter(null, 1, { within })).toEqual(known.slice(0, 1));
      }
    });

    it("lists the transactions that were created in a range of time, with every filter and order", async () => {
      const begin = await subject.now();
      const { lane } = await populate();
      await subject.tick();
      const middle = await subject.now();
      const fence = await holdLane(store, { chainId: 9, signer: lane.signer });
      await allocate(store, fence, [anIntent(fence.lane), anIntent(fence.lane)]);
      await subject.intake(anIntent(fence.lane));
      await subject.tick();
      const end = await subject.now();
      const everything = await store.transactions({ order: "oldest", limit: 1_000 });
      const ranges = [
        { createdAfter: begin, createdBefore: middle },
        { createdAfter: middle, createdBefore: end },
        { createdAfter: begin },
        { createdAfter: middle },
        { createdBefore: middle },
        { createdAfter: end, createdBefore: new Date(end.getTime() + 60_000) },
      ];
      const filters: Partial<ListFilter>[] = [{}, { chainId: 9 }, { signer: lane.signer }, { state: "ALLOCATED" }];
      for (const range of ranges) {
        for (const filter of [...filters, { state: "CREATED" as const }, { state: "CONFIRMED" as const }]) {
          const expected = everything.filter(
            ({ createdAt, ...record }) =>
              (range.createdAfter === undefined || createdAt >= range.createdAfter) &&
              (range.createdBefore === undefined || createdAt < range.createdBefore) &&
              (filter.chainId === undefined || record.lane.chainId === filter.chainId) &&
              (filter.signer === undefined || record.lane.signer === filter.signer) &&
              (filter.state === undefined || record.state === filter.state),
          );
          const oldest = expected.map(({ txId }) => txId);
          expect(await ids({ ...range, ...filter, limit: 1_000 })).toEqual(oldest);
          const newest = await ids({ ...range, ...filter, order: "newest", limit: 1_000 });
          expect(newest).toEqual([...oldest].reverse());
          const paged: string[] = [];
          for (;;) {
            const after = paged.at(-1);
            const page = await ids({ ...range, ...filter, limit: 2, ...(after === undefined ? {} : { after }) });
            paged.push(...page);
            if (page.length < 2) break;
          }
          expect(paged).toEqual(oldest);
        }
      }
      expect((await ids({ createdAfter: middle, chainId: 9, limit: 1_000 })).length).toBe(3);
    });

    describe("costs", () => {
      const at = async (filter: Partial<CostFilter>) => {
        const { items, next } = await store.costs({ order: "oldest", limit: 100, ...filter });
        return { items: [...items].sort((a, b) => (a.txId < b.txId ? -1 : 1)), next };
      };
      const paid = { gasUsed: 21_000n, effectiveGasPrice: 5n, besideGas: 7n };

      it("has fees and value of final transactions whose own payload was mined, and nothing for others", async () => {
        const fence = await holdLane(store);
        const to = uniqueAddress();
        const intent = (owner: string) => anIntent(fence.lane, { owner, payload: { to, value: 1_000n } });
        const [done, reverted, open] = [intent("shop"), intent("shop"), intent("bank")];
        await confirm(store, fence, { blockNumber: 1, ...paid }, done);
        await mine(store, fence, { blockNumber: 2, ...paid, status: "reverted" }, reverted);
        const completion = { state: "FAILED_FINAL", subState: "REVERTED", settled: true, txHash: null } as const;
        await apply(store, fence, [step(reverted.txId, AT.mined, "revert", { completion })]);
        await mine(store, fence, { blockNumber: 3, ...paid }, open);
        await subject.intake(anIntent(fence.lane));
        const { items, next } = await at({ signer: fence.lane.signer });
        const common = { lane: fence.lane, receiver: to, createdAt: expect.any(Date) };
        expect(items).toEqual([
          { ...common, txId: done.txId, owner: "shop", state: "CONFIRMED", fees: 105_007n, value: 1_000n },
          { ...common, txId: reverted.txId, owner: "shop", state: "FAILED_FINAL", fees: 105_007n, value: 0n },
          { ...common, txId: open.txId, owner: "bank", state: "TRACKING", fees: 0n, value: 0n },
        ]);
        expect(next).toBeNull();
      });

      it("counts the highest offer if the price is unknown, and no transaction of another program", async () => {
        const fence = await holdLane(store);
        const unknown = anIntent(fence.lane);
        await confirm(store, fence, { blockNumber: 1, ...paid, effectiveGasPrice: null }, unknown);
        const lost = anIntent(fence.lane);
        await allocate(store, fence, [lost]);
        const [own, foreign] = [anAttempt(1), anAttempt(2, { kind: "external", foreign: true, rawTransaction: null })];
        await apply(store, fence, [
          step(lost.txId, AT.allocated, "sign", { attempt: own }),
          step(lost.txId, AT.pending, "mine", { attempt: foreign, receipt: aReceipt(foreign.txHash, paid) }),
        ]);
        const completion = { state: "FAILED_FINAL", subState: "NONCE_CONSUMED_EXTERNALLY", settled: true } as const;
        await apply(store, fence, [
          step(lost.txId, AT.mined, "loseNonce", { completion: { ...completion, txHash: null } }),
        ]);
        const { items } = await at({ signer: fence.lane.signer });
        const fees = items.map((cost) => [cost.txId, cost.fees, cost.value]);
        expect(fees).toEqual([
          [unknown.txId, 21_000n * 30_000_000_000n + 7n, 1n],
          [lost.txId, 0n, 0n],
        ]);
      });

      it("has the bytes of a mined replacement, and no value for a mined cancel", async () => {
        const fence = await holdLane(store);
        const finals = [];
        for (const [kind, event] of [
          ["replace", "confirmReplacement"],
          ["cancel", "confirmCancel"],
        ] as const) {
          const intent = anIntent(fence.lane);
          await allocate(store, fence, [intent]);
          const second = anAttempt(2, { kind });
          await apply(store, fence, [
            step(intent.txId, AT.allocated, "sign", { attempt: anAttempt(1) }),
            step(intent.txId, AT.pending, kind, { attempt: second }),
            step(intent.txId, AT.pending, "mine", { receipt: aReceipt(second.txHash, paid) }),
          ]);
          const { state, subState } = TRANSITIONS[event].to;
          const completion = { state, subState, settled: true, txHash: second.txHash } as NewCompletion;
          await apply(store, fence, [step(intent.txId, AT.mined, event, { completion })]);
          finals.push({ intent, second });
        }
        const { items } = await at({ signer: fence.lane.signer });
        expect(items.map(({ replacement, fees, value }) => ({ replacement, fees, value }))).toEqual([
          { replacement: finals[0]?.second.rawTransaction, fees: 105_007n, value: 1n },
          { replacement: undefined, fees: 105_007n, value: 0n },
        ]);
      });

      it("returns every transaction once over all pages", async () => {
        const fence = await holdLane(store);
        const intents = Array.from({ length: 5 }, () => anIntent(fence.lane));
        await allocate(store, fence, intents);
        const found: string[] = [];
        let after: string | null = null;
        do {
          const page: CostPage = await at({ signer: fence.lane.signer, limit: 2, ...(after !== null && { after }) });
          found.push(...page.items.map(({ txId }) => txId));
          after = page.next;
        } while (after !== null);
        expect(found).toEqual(intents.map(({ txId }) => txId));
      });
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
