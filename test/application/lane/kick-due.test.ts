import { describe, expect, it, vi } from "vitest";
import { kickInFlight, kickTenth } from "../../../src/application/lane/kick-due.ts";
import type { Tracked } from "../../../src/application/lane/owned-lane.ts";
import { range } from "../../../src/domain/range.ts";
import { createChainBench, createOwnedLane } from "../../support/chain-bench.ts";
import { trackedRecord } from "../../support/stage-bench.ts";

describe("a node's lanes", () => {
  it("are each checked by the periodic timer once in ten ticks, even if idle", () => {
    const lanes = range(1, 23).map(() => createOwnedLane());
    const looks = lanes.map((lane) => vi.spyOn(lane, "kickDue"));
    for (const beat of range(1, 10)) kickTenth(lanes, beat, 5);
    expect(looks.map(({ mock }) => mock.calls)).toEqual(lanes.map(() => [[5]]));
  });

  it("are checked periodically while a transaction is in flight", () => {
    const { context } = createChainBench();
    const atRest = createOwnedLane({}, context);
    const lane = createOwnedLane({ tracking: [trackedRecord(4)] }, context);
    expect([...context.onChain]).toEqual([lane]);
    const looks = vi.spyOn(lane, "kickDue");
    kickInFlight(context.onChain, 1);
    kickInFlight(context.onChain, 2);
    expect(looks.mock.calls).toEqual([[1], [2]]);
    const tx = lane.unmined.get(4) as Tracked;
    lane.leave(tx);
    kickInFlight(context.onChain, 3);
    expect(looks).toHaveBeenCalledTimes(2);
    expect(context.onChain.size).toBe(0);
    lane.track(tx);
    atRest.track(tx);
    expect([...context.onChain]).toEqual([lane, atRest]);
  });

  it("are no longer checked periodically once the node has lost them", () => {
    const { context } = createChainBench();
    const lane = createOwnedLane({ tracking: [trackedRecord(4)] }, context);
    const tx = lane.unmined.get(4) as Tracked;
    lane.stop();
    lane.follow(tx);
    expect(context.onChain.size).toBe(0);
  });

  it("are checked periodically while a reorg of mined transactions is possible", () => {
    const { context } = createChainBench();
    const lane = createOwnedLane({ watched: [{ hash: `0x${"1".repeat(64)}`, number: 7 }] }, context);
    kickInFlight(context.onChain, 1);
    expect([...context.onChain]).toEqual([lane]);
  });
});
