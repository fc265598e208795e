import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BlockRef, BlockWindow, isLinked } from "../../../src/domain/chain/block-window.ts";
import { forks, hashNumber, NaiveChain } from "../../support/naive-chain.ts";

function block(number: number, hash: number, parent: number): BlockRef {
  return { number, hash: hashNumber(hash), parentHash: hashNumber(parent) };
}

const THREE = [block(10, 1, 0), block(11, 2, 1), block(12, 3, 2)];

describe("a block window", () => {
  it("has no hashes if it is empty", () => {
    const { empty } = BlockWindow;
    expect([empty.tip, empty.oldest, empty.size, empty.hashAt(0)]).toEqual([null, null, 0, null]);
    expect(empty.above(-1)).toEqual([]);
    expect(empty.contains(block(0, 0, 0))).toBe(false);
    expect(empty.extend(THREE, 5)).toBeNull();
    expect(empty.extend([], 5)).toEqual({ window: empty, added: [], removed: [] });
  });

  it.each([
    ["a gap", [block(1, 1, 0), block(3, 3, 1)]],
    ["a wrong parent", [block(1, 1, 0), block(2, 2, 9)]],
    ["descending blocks", [block(2, 2, 1), block(1, 1, 0)]],
    ["the same block twice", [block(1, 1, 0), block(1, 1, 0)]],
  ])("refuses %s, when it is built and when it is extended", (_, blocks) => {
    expect(isLinked(blocks)).toBe(false);
    expect(() => BlockWindow.of(blocks)).toThrow("do not form one chain");
    expect(() => BlockWindow.of(THREE).extend(blocks, 10)).toThrow("do not form one chain");
  });

  it("returns the hash of each of its blocks, and null for other heights", () => {
    const window = BlockWindow.of(THREE);
    expect([9, 10, 11, 12, 13].map((number) => window.hashAt(number))).toEqual([
      null,
      hashNumber(1),
      hashNumber(2),
      hashNumber(3),
      null,
    ]);
    expect(window.contains({ number: 11, hash: hashNumber(3) })).toBe(false);
    expect(window.above(10).map(({ number }) => number)).toEqual([11, 12]);
    expect(window.above(2).length).toBe(3);
    expect(window.above(12)).toEqual([]);
  });

  it("may hold the chain that a block stands on if the block is one of it or older, and not if it is newer", () => {
    const window = BlockWindow.of(THREE);
    const mayStandOn = (number: number, hash: number) => window.mayStandOn({ number, hash: hashNumber(hash) });
    expect([mayStandOn(9, 99), mayStandOn(11, 2), mayStandOn(11, 99), mayStandOn(13, 4)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(BlockWindow.empty.mayStandOn(block(0, 0, 0))).toBe(false);
  });

  it("keeps only the number, hash and parent hash of each block", () => {
    const heavy = { ...block(1, 1, 0), transactionHashes: Array(1_000).fill("0x") };
    expect(Object.keys(BlockWindow.of([heavy]).tip ?? {})).toEqual(["number", "hash", "parentHash"]);
  });

  it("is immutable: extending it returns a new window", () => {
    const window = BlockWindow.of(THREE);
    const change = window.extend([block(11, 7, 1), block(12, 8, 7)], 10);
    expect(change?.window.hashAt(12)).toBe(hashNumber(8));
    expect(change?.removed.map(({ hash }) => hash)).toEqual([hashNumber(3), hashNumber(2)]);
    expect(window.hashAt(12)).toBe(hashNumber(3));
    expect(window.size).toBe(3);
  });

  it("may be extended by a shorter branch, which is then canonical", () => {
    const change = BlockWindow.of(THREE).extend([block(11, 7, 1)], 10);
    expect(change?.window.tip).toEqual(block(11, 7, 1));
    expect(change?.window.hashAt(12)).toBeNull();
  });

  it("cannot be extended by blocks that fork below the window's oldest block", () => {
    const window = BlockWindow.of(THREE);
    expect(window.extend([block(10, 9, 0)], 10)).toBeNull();
    expect(window.extend([block(14, 9, 8)], 10)).toBeNull();
    expect(window.extend([block(12, 9, 8)], 10)).toBeNull();
  });
});

describe("a block window, compared with a plain list,", () => {
  it("finds the same fork point for every fork within the window", () => {
    fc.assert(
      fc.property(forks, fc.integer({ min: 1, max: 12 }), fc.nat(1_000), (steps, capacity, first) => {
        const chain = new NaiveChain(first);
        let window = BlockWindow.of(chain.blocks);
        for (const step of steps) {
          const { added, removed } = chain.fork(step);
          const change = window.extend(added, capacity);
          const parent = { number: (added[0] as BlockRef).number - 1, hash: (added[0] as BlockRef).parentHash };
          if (!window.contains(parent)) {
            expect(change).toBeNull();
            return;
          }
          expect(change?.removed).toEqual(removed);
          expect(change?.added).toBe(added);
          window = (change as NonNullable<typeof change>).window;
          const expected = chain.blocks.slice(-capacity).filter(({ number }) => number >= oldest(window));
          expect(blocksOf(window)).toEqual(expected);
          expect(window.tip).toEqual(chain.tip);
        }
      }),
    );
  });

  it("never contains more blocks than its capacity", () => {
    fc.assert(
      fc.property(forks, fc.integer({ min: 8, max: 40 }), (steps, capacity) => {
        const chain = new NaiveChain(0, capacity);
        let window = BlockWindow.of(chain.blocks);
        for (const step of steps) {
          const change = window.extend(chain.fork(step).added, capacity);
          if (change === null) return;
          window = change.window;
          expect(window.size).toBeLessThanOrEqual(capacity);
          expect(isLinked(blocksOf(window))).toBe(true);
        }
      }),
    );
  });
});

function oldest(window: BlockWindow): number {
  return window.oldest?.number ?? 0;
}

function blocksOf(window: BlockWindow): readonly BlockRef[] {
  return window.above(oldest(window) - 1);
}
