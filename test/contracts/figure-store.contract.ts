import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_SIGNERS, bucketStart, type FigureRow, HOUR_S, MINUTE_S } from "../../src/domain/figures/figures.ts";
import { DAY_S, Spend } from "../../src/domain/figures/spend.ts";
import type { Fence } from "../../src/domain/lane.ts";
import { holdLane } from "../support/lane-samples.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

/** The contract of every FigureStore: buckets are written under a fence, replaced by their instance, and read back. */
export function figureStoreContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`FigureStore contract: ${name}`, () => {
    let subject: StoreSubject;
    let store: Store;
    let hour: Date;
    beforeAll(async () => {
      subject = await create();
      store = await subject.connect();
      hour = bucketStart(await subject.now(), HOUR_S);
    });
    afterAll(async () => {
      await store.close();
      await subject.close();
    });

    const row = ({ lane }: Fence, of: Partial<FigureRow> = {}): FigureRow => ({
      ...{ stepSeconds: MINUTE_S, at: hour, chainId: lane.chainId, signer: lane.signer },
      ...{ created: 3, completed: 2, failed: 1, fees: 2n ** 90n },
      detail: { stuck: 1, finality: { "57": 2 }, baseFee: ["30", 2, "20"], keys: [[null, 2, `${2n ** 90n}`]] },
      ...of,
    });
    const write = (fence: Fence, ...figures: readonly FigureRow[]) => store.writeFigures(fence, { figures, spend: [] });
    /** Writes buckets of hours with the spend of their day, as a node does. */
    const pay = (fence: Fence, ...figures: readonly FigureRow[]) => {
      const days = new Map<number, Spend>();
      for (const { at, completed, fees } of [...figures].sort((a, b) => a.at.getTime() - b.at.getTime())) {
        const day = bucketStart(at, DAY_S).getTime();
        const spend = days.get(day) ?? new Spend();
        days.set(day, spend);
        spend.add(at, { completed, fees });
      }
      const spend = [...days].map(([day, { ranks }]) => ({ ...fence.lane, at: new Date(day), ranks }));
      return store.writeFigures(fence, { figures, spend });
    };
    const later = (minutes: number) => new Date(hour.getTime() + minutes * 60_000);
    const of = ({ lane }: Fence) => ({ from: hour, to: later(60), signers: [lane.signer], chains: null });

    it("reads buckets as they were written, with amounts beyond 64 bits", async () => {
      const fence = await holdLane(store);
      const rows = [row(fence), row(fence, { at: later(1), detail: {} })];
      expect(await write(fence, ...rows)).toBe(true);
      const found = await store.figures(MINUTE_S, of(fence));
      expect([...found].sort((a, b) => a.at.getTime() - b.at.getTime())).toEqual(rows);
      expect(await store.figures(HOUR_S, of(fence))).toEqual([]);
    });

    it("replaces a bucket that the same instance wrote before", async () => {
      const fence = await holdLane(store);
      await write(fence, row(fence));
      await write(fence, row(fence, { created: 9 }));
      expect((await store.figures(MINUTE_S, of(fence))).map(({ created }) => created)).toEqual([9]);
    });

    it("keeps the buckets of two instances apart, and each when the other writes", async () => {
      const fence = await holdLane(store);
      await write(fence, row(fence, { created: 5 }));
      await store.releaseLane(fence);
      const other = await holdLane(store, fence.lane);
      expect(other.instanceId).not.toBe(fence.instanceId);
      await write(other, row(other, { created: 2 }));
      const created = (await store.figures(MINUTE_S, of(fence))).map((each) => each.created);
      expect(created.sort()).toEqual([2, 5]);
    });

    // protects [Figures] src/adapters/postgres/statements/figure.ts
    it("refuses buckets of a writer that no longer owns its lane", async () => {
      const fence = await holdLane(store);
      await store.releaseLane(fence);
      await holdLane(store, fence.lane);
      expect(await write(fence, row(fence))).toBe(false);
      expect(await store.figures(MINUTE_S, of(fence))).toEqual([]);
      const spend = [{ ...fence.lane, at: bucketStart(hour, DAY_S), ranks: [5] }];
      expect(await store.writeFigures(fence, { figures: [], spend })).toBe(false);
    });

    it("selects by range, chain and signer; without a signer, the sums of chains", async () => {
      const fence = await holdLane(store, { chainId: 77, signer: (await holdLane(store)).lane.signer });
      const total = row(fence, { signer: ALL_SIGNERS, created: 40 });
      await write(fence, row(fence), total, row(fence, { at: later(2) }));
      expect(await store.figures(MINUTE_S, { ...of(fence), signers: null, chains: [77] })).toEqual([total]);
      expect(await store.figures(MINUTE_S, { ...of(fence), chains: [78] })).toEqual([]);
      expect(await store.figures(MINUTE_S, { ...of(fence), signers: [] })).toEqual([]);
      expect(await store.figures(MINUTE_S, { ...of(fence), from: later(1), to: later(2) })).toEqual([]);
      expect(await store.figures(MINUTE_S, { ...of(fence), from: later(2), to: later(3) })).toHaveLength(1);
    });

    it("reads ranges of any year", async () => {
      const fence = await holdLane(store);
      await write(fence, row(fence));
      await pay(fence, row(fence, { stepSeconds: HOUR_S }));
      const never = { ...of(fence), from: new Date(-1e15), to: new Date("0000-06-01T00:00:00Z") };
      const ever = { ...of(fence), from: new Date("0000-01-01T00:00:00Z"), to: new Date(8.64e15) };
      expect(await store.figures(MINUTE_S, never)).toEqual([]);
      expect(await store.spenders(never, 20)).toEqual([]);
      expect(await store.figures(MINUTE_S, ever)).toHaveLength(1);
      expect(await store.spenders(ever, 20)).toHaveLength(1);
    });

    it("keeps one document of ABIs, which the last writer replaces", async () => {
      const fresh = await create();
      const other = await fresh.connect();
      expect(await other.abis()).toEqual({ items: [], changedAt: null, changedBy: null });
      const item = {
        name: "Payouts",
        abi: ["event Paid(address to)"],
        addresses: [(await holdLane(store)).lane.signer],
      };
      const stored = await other.replaceAbis([item, { name: "Any", abi: [{ type: "fallback" }] }], "operator:alice");
      expect(stored).toMatchObject({ items: [item, { name: "Any" }], changedBy: "operator:alice" });
      await other.replaceAbis([item], "operator:bob");
      expect(await other.abis()).toEqual({ items: [item], changedBy: "operator:bob", changedAt: expect.any(Date) });
      await other.close();
      await fresh.close();
    });

    // protects [Figures] src/adapters/postgres/statements/figure.ts
    it("forgets minutes after a day and hours after a month, with a later write", async () => {
      const fence = await holdLane(store);
      const days = (count: number) => new Date(hour.getTime() - count * 86_400_000);
      const everything = { ...of(fence), from: days(60) };
      const atOf = (rows: readonly FigureRow[]) => rows.map(({ at }) => at.getTime()).sort();
      await write(fence, row(fence, { at: days(0.9) }), row(fence, { at: days(2) }));
      await write(
        fence,
        row(fence, { stepSeconds: HOUR_S, at: days(8) }),
        row(fence, { stepSeconds: HOUR_S, at: days(40) }),
      );
      await write(fence, row(fence));
      expect(atOf(await store.figures(MINUTE_S, everything))).toEqual([days(0.9), hour].map((at) => at.getTime()));
      expect(atOf(await store.figures(HOUR_S, everything))).toEqual([days(8).getTime()]);
    });

    it("names the signers that paid most, by whole hours", async () => {
      const [dear, cheap, idle] = [await holdLane(store), await holdLane(store), await holdLane(store)];
      const chains = [dear.lane.chainId];
      const signers = [dear, cheap, idle].map(({ lane }) => lane.signer);
      const hourly = { stepSeconds: HOUR_S } as const;
      await pay(dear, row(dear, { ...hourly, fees: 10n }), row(dear, { ...hourly, at: later(-60), fees: 4n }));
      await pay(cheap, row(cheap, { ...hourly, fees: 11n }));
      await write(cheap, row(cheap, { fees: 10n ** 30n }));
      await pay(idle, row(idle, { ...hourly, completed: 0, fees: 0n }));
      const filter = { from: later(-60), to: later(60), signers, chains };
      expect(await store.spenders(filter, 20)).toEqual([
        { ...dear.lane, completed: 4, fees: 14n },
        { ...cheap.lane, completed: 2, fees: 11n },
      ]);
      expect(await store.spenders({ ...filter, from: hour }, 1)).toEqual([{ ...cheap.lane, completed: 2, fees: 11n }]);
      expect(await store.spenders({ ...filter, chains: [78] }, 20)).toEqual([]);
      expect(await store.spenders({ ...filter, signers: [] }, 20)).toEqual([]);
    });

    // protects [Figures] src/adapters/postgres/statements/figure.ts
    it("selects the signers that paid most in any hours of several days, with exact amounts", async () => {
      const chainId = 4_711;
      const day = bucketStart(hour, DAY_S).getTime() - 3 * 86_400_000;
      const at = (hours: number) => new Date(day + hours * 3_600_000);
      const big = 10n ** 14n;
      // Fees by hour, from the start of the first day. A signer that pays much outside the range must not be selected.
      const paid: readonly (readonly [number, bigint])[][] = [
        [
          [0, big],
          [5, 7n],
          [50, 1n],
          [71, big],
        ],
        [
          [23, big],
          [24, big + 1n],
        ],
        [
          [5, 8n],
          [30, 3n],
        ],
        [
          [4, 100n * big],
          [70, 100n * big],
        ],
      ];
      const lanes: Fence[] = [];
      for (const hours of paid) {
        const fence = await holdLane(store, { chainId, signer: (await holdLane(store)).lane.signer });
        const rows = hours.map(([index, fees]) =>
          row(fence, { stepSeconds: HOUR_S, at: at(index), completed: 1, fees }),
        );
        await pay(fence, ...rows);
        lanes.push(fence);
      }
      const spent = async (from: number, to: Date, limit: number, signers: readonly number[] | null = null) => {
        const only = signers === null ? null : signers.map((index) => (lanes[index] as Fence).lane.signer);
        const found = await store.spenders({ from: at(from), to, chains: [chainId], signers: only }, limit);
        return found.map((each) => [lanes.findIndex(({ lane }) => lane.signer === each.signer), each.fees]);
      };
      expect(await spent(5, at(70), 20)).toEqual([
        [1, 2n * big + 1n],
        [2, 11n],
        [0, 8n],
      ]);
      expect(await spent(5, at(70), 1)).toEqual([[1, 2n * big + 1n]]);
      expect(await spent(5, at(70), 1, [0, 2])).toEqual([[2, 11n]]);
      expect(await spent(5, at(6), 20)).toEqual([
        [2, 8n],
        [0, 7n],
      ]);
      expect(await spent(6, at(23), 20)).toEqual([]);
      expect(await spent(24, at(48), 20)).toEqual([
        [1, big + 1n],
        [2, 3n],
      ]);
      expect(await spent(50, new Date(at(70).getTime() + 1), 20)).toEqual([
        [3, 100n * big],
        [0, 1n],
      ]);
      expect(await spent(0, at(72), 2)).toEqual([
        [3, 200n * big],
        [0, 2n * big + 8n],
      ]);
    });
  });
}
