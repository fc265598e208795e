import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  depthNeeded,
  type FinalityView,
  isFinal,
  watchDepth,
  watchedThrough,
} from "../../../src/domain/chain/finality.ts";

function view(head: number, tagged: number | null = null, finalized: number | null = null): FinalityView {
  return { head, tagged, finalized };
}

describe("finality by confirmations", () => {
  it.each([
    [100, 0, 100, true],
    [100, 0, 99, false],
    [100, 1, 100, false],
    [100, 1, 101, true],
    [100, 20, 119, false],
    [100, 20, 120, true],
    [0, 0, 0, true],
  ])(
    "makes block %i final if %i confirmations are required and the newest block is %i: %s",
    (blockNumber, confirmations, head, final) => {
      expect(isFinal(blockNumber, { finality: "confirmations", confirmations }, view(head))).toBe(final);
    },
  );

  it("counts the blocks above the transaction's block", () => {
    const settings = { finality: "confirmations", confirmations: 5 } as const;
    expect(isFinal(10, settings, view(14, 1_000, 1_000))).toBe(false);
    expect(isFinal(10, settings, view(15, 0, 0))).toBe(true);
  });

  it("stays reached while the chain grows", () => {
    fc.assert(
      fc.property(fc.nat(1_000), fc.nat(100), fc.nat(2_000), fc.nat(50), (block, confirmations, head, more) => {
        const settings = { finality: "confirmations", confirmations } as const;
        if (isFinal(block, settings, view(head))) expect(isFinal(block, settings, view(head + more))).toBe(true);
      }),
    );
  });
});

describe.each(["safe", "finalized"] as const)("finality by the block tag %s", (finality) => {
  const settings = { finality, confirmations: 0 };

  it.each([
    [100, 99, false],
    [100, 100, true],
    [100, 101, true],
    [100, null, false],
  ])("makes block %i final if the tagged block is %s: %s", (blockNumber, tagged, final) => {
    expect(isFinal(blockNumber, settings, view(10_000, tagged))).toBe(final);
  });
});

describe("the block depth required for finality", () => {
  it.each([
    ["confirmations", 20, 20],
    ["confirmations", 0, 0],
    ["safe", 20, 0],
    ["finalized", 20, 0],
  ] as const)("with the rule %s and %i confirmations is %i blocks", (finality, confirmations, depth) => {
    expect(depthNeeded({ finality, confirmations })).toBe(depth);
  });
});

describe("the period of reorg checks after a final outcome", () => {
  it.each([
    [0, 64],
    [20, 64],
    [32, 64],
    [33, 66],
    [100, 200],
  ])("lasts, with %i confirmations, until the block is %i blocks deep", (confirmations, depth) => {
    expect(watchDepth(confirmations)).toBe(depth);
  });

  it("ends early if the `finalized` tag covers the block", () => {
    expect(watchedThrough(20, view(100))).toBe(36);
    expect(watchedThrough(20, view(100, 90, 90))).toBe(90);
    expect(watchedThrough(20, view(1_000, 90, 90))).toBe(936);
  });

  it("does not end while the chain is shorter than the required depth", () => {
    expect(watchedThrough(20, view(10))).toBe(-1);
    expect(watchedThrough(20, view(-1))).toBe(-1);
  });

  it("never ends before the block has its required confirmations", () => {
    fc.assert(
      fc.property(fc.nat(500), fc.nat(2_000), fc.nat(2_000), (confirmations, block, head) => {
        if (block > watchedThrough(confirmations, view(head))) return;
        expect(isFinal(block, { finality: "confirmations", confirmations }, view(head))).toBe(true);
      }),
    );
  });
});
