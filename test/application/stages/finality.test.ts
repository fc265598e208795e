import { describe, expect, it } from "vitest";
import type { Tracked } from "../../../src/application/lane/owned-lane.ts";
import type { ChainSettings } from "../../../src/application/settings.ts";
import { decideFinal, openPass, withdrawOrphaned } from "../../../src/application/stages/6-finality/finality.ts";
import type { Hash } from "../../../src/domain/lane.ts";
import { hashNumber } from "../../support/naive-chain.ts";
import {
  createStageBench,
  due,
  eventsOf,
  receiptOf,
  type StageBench,
  trackedRecord,
} from "../../support/stage-bench.ts";

const TAGS = { tagDepths: { safe: 4, finalized: 8 } };

async function at(height: number, settings: Partial<ChainSettings> = {}, endpoints: 1 | 2 = 1): Promise<StageBench> {
  const bench = createStageBench({}, { settings: { confirmations: 2, ...settings }, chain: TAGS, endpoints });
  bench.simulated.mine(height);
  await bench.context.follower.advance();
  return bench;
}

/** A transaction of ours in that block; of the canonical one where no hash is given. */
function mined(bench: StageBench, nonce: number, number: number, hash?: Hash): Tracked {
  const tx = due(nonce);
  bench.lane.track(tx);
  bench.lane.mine(
    tx,
    receiptOf(nonce, { number, hash: hash ?? (bench.simulated.blocks.byNumber(number)?.hash as Hash) }),
  );
  Object.assign(tx, { status: { state: "TRACKING", subState: "MINED" } });
  return tx;
}

async function decide(bench: StageBench): Promise<readonly string[]> {
  await decideFinal(bench.ports, await openPass(bench.context, [bench.lane]), bench.lane);
  return eventsOf(bench.writes);
}

describe("a pass", () => {
  it("reads the head and the tag once, and no tag where none is needed", async () => {
    const plain = await at(20);
    expect((await openPass(plain.context, [])).view).toEqual({ head: 20, tagged: null, finalized: null });
    const safe = await at(20, { finality: "safe" });
    expect((await openPass(safe.context, [])).view).toEqual({ head: 20, tagged: 16, finalized: null });
    const final = await at(20, { finality: "finalized" });
    expect((await openPass(final.context, [])).view).toEqual({ head: 20, tagged: 12, finalized: 12 });
  });

  it("before anything was seen decides nothing", async () => {
    const blind = createStageBench({}, { settings: { finality: "finalized" }, chain: TAGS });
    expect((await openPass(blind.context, [])).view).toEqual({ head: -1, tagged: null, finalized: null });
  });

  it("has no tag where the node has none", async () => {
    const bench = createStageBench({}, { settings: { finality: "safe" }, chain: { tagDepths: null } });
    bench.simulated.mine(9);
    await bench.context.follower.advance();
    expect((await openPass(bench.context, [bench.lane])).view.tagged).toBeNull();
  });

  it("has no tag while the window is on a branch that the tagged block is not part of", async () => {
    const bench = await at(20, { finality: "finalized" });
    bench.simulated.reorg(10, { newBlocks: 30 });
    expect((await openPass(bench.context, [bench.lane])).view).toMatchObject({
      head: 20,
      tagged: null,
      finalized: null,
    });
    await bench.context.follower.advance();
    expect((await openPass(bench.context, [bench.lane])).view).toMatchObject({ head: 40, tagged: 32, finalized: 32 });
  });

  it("has a tag below the window: hashes down there are asked of the chain itself", async () => {
    const bench = createStageBench(
      {},
      { settings: { finality: "finalized" }, chain: { tagDepths: { safe: 1, finalized: 150 } } },
    );
    bench.simulated.mine(200);
    await bench.context.follower.advance();
    expect((await openPass(bench.context, [bench.lane])).view.tagged).toBe(50);
  });

  it("fails where the tag cannot be asked for: nothing is decided", async () => {
    const bench = await at(20, { finality: "safe" });
    bench.faults.inject({ kind: "unavailable" });
    await expect(openPass(bench.context, [bench.lane])).rejects.toThrow("simulated fault");
  });
});

describe("what is final", () => {
  it("by confirmations: with so many blocks on top, and not one fewer", async () => {
    const bench = await at(20);
    mined(bench, 1, 18);
    mined(bench, 2, 19);
    expect(await decide(bench)).toEqual(["confirm tx 1"]);
    expect([...bench.lane.mined.keys()]).toEqual([2]);
    expect([...bench.lane.watched.values()]).toEqual([18]);
    expect(bench.passed).toEqual(["finality.decided", "complete.committed"]);
    expect(bench.control.feedGrew).toBe(1);
  });

  it("by tag: at or below it", async () => {
    const bench = await at(20, { finality: "safe" });
    mined(bench, 1, 16);
    mined(bench, 2, 17);
    expect(await decide(bench)).toEqual(["confirm tx 1"]);
  });

  it("is told with the mined hash; reverted where the receipt says so", async () => {
    const bench = await at(20);
    const reverted = mined(bench, 1, 10);
    Object.assign(reverted, { receipt: { ...reverted.receipt, status: "reverted" } });
    expect(await decide(bench)).toEqual(["revert tx 1"]);
    expect(bench.writes).toMatchObject([
      { items: [{ to: "FAILED_FINAL", subState: "REVERTED", completion: { txHash: hashNumber(1), settled: true } }] },
    ]);
  });

  it("is not what left the chain since the pass began", async () => {
    const bench = await at(20);
    mined(bench, 1, 10, hashNumber(10));
    expect(await decide(bench)).toEqual([]);
  });

  it("is not said for a lane that stopped meanwhile", async () => {
    const bench = await at(200);
    mined(bench, 1, 10); // below the window: its hash has to be asked for
    const blocksByNumber = bench.chain.blocksByNumber.bind(bench.chain);
    Object.assign(bench.chain, {
      blocksByNumber: (numbers: readonly number[]) => {
        bench.lane.lost = true;
        bench.lane.stop();
        return blocksByNumber(numbers);
      },
    });
    bench.lane.watched.set(hashNumber(5), 5);
    expect(await decide(bench)).toEqual([]);
    expect(bench.telemetry.of("lease.fenced"), "decided too late").toMatchObject([{ write: "finality" }]);
  });

  it("wakes nobody where it was not committed", async () => {
    const bench = await at(20);
    mined(bench, 1, 10);
    bench.control.answer = () => ({ status: "fenced" });
    await decide(bench);
    expect([bench.control.feedGrew, bench.passed]).toEqual([0, ["finality.decided"]]);
  });
});

describe("a second endpoint", () => {
  it("that shows the same block lets it be final", async () => {
    const bench = await at(20, {}, 2);
    mined(bench, 1, 10);
    mined(bench, 2, 10);
    expect(await decide(bench)).toEqual(["confirm tx 1", "confirm tx 2"]);
  });

  it("that has no such block yet, or shows another, does not", async () => {
    const bench = await at(20, {}, 2);
    mined(bench, 1, 10);
    bench.elsewhere.pinHead(5);
    expect(await decide(bench)).toEqual([]);
    bench.elsewhere.pinHead(null);
    Object.assign(bench.chain, { secondOpinion: async () => hashNumber(77) });
    expect(await decide(bench)).toEqual([]);
  });

  it("that nobody can ask has no say", async () => {
    const bench = await at(20, {}, 2);
    mined(bench, 1, 10);
    Object.assign(bench.chain, { secondOpinion: async () => "none" });
    expect(await decide(bench)).toEqual(["confirm tx 1"]);
  });
});

describe("what left the chain", () => {
  it("is withdrawn, and sent again at once", async () => {
    const bench = await at(20);
    const gone = mined(bench, 1, 19, hashNumber(77));
    mined(bench, 2, 19);
    await withdrawOrphaned(bench.ports, bench.context, bench.lane);
    expect(eventsOf(bench.writes)).toEqual(["withdraw tx 1"]);
    expect(bench.writes).toMatchObject([{ items: [{ receipt: null, to: "TRACKING", subState: "PENDING" }] }]);
    expect(gone).toMatchObject({ receipt: null, claimed: false, nextSendAtMs: 0, rawTransaction: null });
    expect([[...bench.lane.unmined.keys()], [...bench.lane.mined.keys()]]).toEqual([[1], [2]]);
    expect(bench.passed).toEqual(["withdraw.committed"]);
  });

  it("is sent again as the attempt that was mined", async () => {
    const bench = await at(20);
    const tx = mined(bench, 1, 19, hashNumber(77));
    tx.attempts.push({ ...(tx.attempts[0] as Tracked["attempts"][number]), ordinal: 2, txHash: hashNumber(500) });
    tx.sendOrdinal = 2;
    await withdrawOrphaned(bench.ports, bench.context, bench.lane);
    expect(tx.sendOrdinal).toBe(1);
  });

  it("is nothing to a lane that stopped while the chain was asked", async () => {
    const bench = await at(200);
    mined(bench, 1, 10, hashNumber(77));
    const blocksByNumber = bench.chain.blocksByNumber.bind(bench.chain);
    Object.assign(bench.chain, {
      blocksByNumber: (numbers: readonly number[]) => {
        bench.lane.stop();
        return blocksByNumber(numbers);
      },
    });
    await withdrawOrphaned(bench.ports, bench.context, bench.lane);
    expect(bench.writes).toEqual([]);
  });

  it("is not known of a height that nobody can tell about", async () => {
    const bench = await at(20);
    mined(bench, 1, 25, hashNumber(25)); // above the window: the endpoint fell back
    bench.lane.watched.set(hashNumber(26), 26);
    await withdrawOrphaned(bench.ports, bench.context, bench.lane);
    expect(bench.writes).toEqual([]);
  });

  it("after it was final is taken back in the feed, and tracked again", async () => {
    const bench = await at(20);
    const stored = receiptOf(1, { number: 10, hash: hashNumber(77) });
    bench.lane.watched.set(hashNumber(77), 10);
    bench.lane.watched.set(bench.simulated.blocks.byNumber(11)?.hash as Hash, 11);
    bench.rows.watched = [trackedRecord(1, { state: "CONFIRMED", subState: null, receipt: stored })];
    await withdrawOrphaned(bench.ports, bench.context, bench.lane);
    expect(bench.writes).toMatchObject([
      {
        items: [
          {
            event: "reorg",
            from: "CONFIRMED",
            to: "TRACKING",
            receipt: null,
            completion: { state: "REORGED", settled: false, txHash: hashNumber(1) },
          },
        ],
      },
    ]);
    expect([...bench.lane.watched.values()]).toEqual([11]);
    expect(bench.lane.unmined.get(1)).toMatchObject({ receipt: null, nextSendAtMs: 0, sendOrdinal: 1 });
    expect(bench.context.hashes.has(hashNumber(1))).toBe(true);
    expect(bench.telemetry.of("alert")).toMatchObject([{ code: "DEEP_REORG", severity: "CRITICAL" }]);
    expect(bench.control.feedGrew).toBe(1);
  });

  it("after it was final is not tracked where that was not committed", async () => {
    const bench = await at(20);
    bench.lane.watched.set(hashNumber(77), 10);
    bench.rows.watched = [trackedRecord(1, { state: "CONFIRMED", subState: null })];
    bench.control.answer = () => ({ status: "fenced" });
    await withdrawOrphaned(bench.ports, bench.context, bench.lane);
    expect([bench.lane.unmined.size, bench.control.feedGrew]).toEqual([0, 0]);
  });

  it("is nothing to a lane that stopped while its rows were read", async () => {
    const bench = await at(20);
    bench.lane.watched.set(hashNumber(77), 10);
    Object.assign(bench.ports.store, {
      loadWatched: async () => {
        bench.lane.stop();
        return [trackedRecord(1, { state: "CONFIRMED", subState: null })];
      },
    });
    await withdrawOrphaned(bench.ports, bench.context, bench.lane);
    expect([bench.writes, bench.telemetry.of("alert")]).toEqual([[], []]);
  });
});

describe("the watch", () => {
  it("ends past its depth, in the database first, and not before", async () => {
    const bench = await at(100);
    bench.lane.watched.set(hashNumber(36), 36);
    bench.lane.watched.set(hashNumber(37), 37);
    await decide(bench);
    expect(bench.writes).toEqual([{ kind: "unwatch", fence: bench.lane.fence, throughBlock: 36 }]);
    expect([...bench.lane.watched.values()]).toEqual([37]);
  });

  it("ends at `finalized`, not at `safe`", async () => {
    const safe = await at(20, { finality: "safe" });
    safe.lane.watched.set(hashNumber(3), 3);
    expect(await decide(safe)).toEqual([]);
    const final = await at(20, { finality: "finalized" });
    final.lane.watched.set(hashNumber(3), 3);
    expect(await decide(final)).toEqual(["unwatch"]);
  });

  it("goes on where its end could not be written", async () => {
    const bench = await at(100);
    bench.lane.watched.set(hashNumber(3), 3);
    bench.control.answer = () => new Error("away");
    await expect(decide(bench)).rejects.toThrow("away");
    expect(bench.lane.watched.size).toBe(1);
  });
});
