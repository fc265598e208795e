import { describe, expect, it } from "vitest";
import { type BlockPace, blockSeen, isStalled, NO_BLOCKS, usualBlockMs } from "../../../src/domain/pace/block-pace.ts";

/** The pace that is measured from blocks `spansMs` milliseconds apart, from time 0 on. */
const apart = (...spansMs: readonly number[]): { readonly pace: BlockPace; readonly atMs: number } => {
  let pace = blockSeen(NO_BLOCKS, 100, 0);
  let atMs = 0;
  for (const [index, ms] of spansMs.entries()) {
    atMs += ms;
    pace = blockSeen(pace, 101 + index, atMs);
  }
  return { pace, atMs };
};
const every = (ms: number, times = 20) => apart(...Array.from({ length: times }, () => ms));

describe("the block production of a chain", () => {
  it("has a known usual interval after some blocks", () => {
    expect(usualBlockMs(every(12_000, 7).pace)).toBeNull();
    expect(usualBlockMs(every(12_000, 8).pace)).toBe(12_000);
    expect(usualBlockMs(every(12_000).pace)).toBe(12_000);
    expect(usualBlockMs(apart(...Array.from({ length: 19 }, () => 12_000), 90_000).pace)).toBe(12_000);
  });

  it("has a usual interval if all but a tenth of the blocks take at most four times as long as most", () => {
    const usual = (slowMs: number, times: number) =>
      usualBlockMs(apart(...Array.from({ length: 20 }, (_, index) => (index < times ? slowMs : 1_000))).pace);
    expect([usual(4_000, 3), usual(4_001, 3), usual(4_001, 2)]).toEqual([1_000, null, 1_000]);
  });

  it("is measured by the last 32 intervals", () => {
    const { pace } = apart(...Array.from({ length: 40 }, (_, index) => index));
    expect(pace.spansMs).toEqual(Array.from({ length: 32 }, (_, index) => 8 + index));
  });

  it("is not measured again at the block that was seen last", () => {
    const { pace, atMs } = every(200);
    expect(blockSeen(pace, 120, atMs + 50)).toEqual(pace);
  });

  it("is measured correctly if one poll returns several blocks", () => {
    let pace = blockSeen(NO_BLOCKS, 0, 0);
    for (let look = 1; look <= 10; look++) pace = blockSeen(pace, 5 * look, 1_000 * look);
    expect(usualBlockMs(pace)).toBe(200);
  });

  it("is stalled after ten intervals without a block, but not before half a minute", () => {
    const slow = every(12_000);
    expect(isStalled(slow.pace, slow.atMs + 119_000, null)).toBe(false);
    expect(isStalled(slow.pace, slow.atMs + 120_000, null)).toBe(true);
    const fast = every(200);
    expect(isStalled(fast.pace, fast.atMs + 29_000, null)).toBe(false);
    expect(isStalled(fast.pace, fast.atMs + 30_000, null)).toBe(true);
  });

  it("is no longer stalled after the next new block", () => {
    const { pace, atMs } = every(200);
    const lower = blockSeen(pace, 90, atMs + 60_000);
    expect(isStalled(lower, atMs + 60_001, null)).toBe(false);
    expect(lower.spansMs).toEqual(pace.spansMs);
  });

  it("counts as stalled only while transactions wait if the chain mines on demand", () => {
    const { pace, atMs } = apart(...Array.from({ length: 20 }, (_, index) => (index % 4 === 0 ? 60_000 : 50)));
    expect(usualBlockMs(pace)).toBeNull();
    expect(isStalled(pace, atMs + 3_600_000, null)).toBe(false);
    expect(isStalled(pace, atMs + 119_000, 3_600_000)).toBe(false);
    expect(isStalled(pace, atMs + 120_000, 3_600_000)).toBe(true);
    // After an hour without transactions, the first send has waited only a second, so the chain does not count as
    // stalled.
    expect(isStalled(pace, atMs + 3_600_000, 1_000)).toBe(false);
  });

  it("is not stalled before the first block was seen", () => {
    expect(isStalled(NO_BLOCKS, 1e9, 1e9)).toBe(false);
  });
});
