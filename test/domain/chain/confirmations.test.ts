import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Confirmation,
  type ConfirmationChange,
  reviseConfirmations,
} from "../../../src/domain/chain/confirmations.ts";
import { forks, hashNumber, NaiveChain } from "../../support/naive-chain.ts";

function list(...blocks: readonly (readonly [number: number, hash: number])[]): readonly Confirmation[] {
  return blocks.map(([number, hash]) => ({ number, hash: hashNumber(hash) }));
}

describe("the stored list of confirming blocks", () => {
  it.each([
    ["nothing is stored and nothing seen", list(), list()],
    ["the observed list equals the stored one", list([1, 1], [2, 2]), list([1, 1], [2, 2])],
    ["fewer blocks are observed than stored", list([1, 1], [2, 2]), list([1, 1])],
    ["no block is observed any more", list([1, 1]), list()],
  ])("stays the same if %s", (_, stored, observed) => {
    expect(reviseConfirmations(stored, observed)).toEqual({ kind: "same" });
  });

  it("is extended if the chain still has all of its blocks", () => {
    expect(reviseConfirmations(list([1, 1], [2, 2]), list([1, 1], [2, 2], [3, 3]))).toEqual({
      kind: "extend",
      blocks: list([3, 3]),
    });
  });

  it("is extended by observed blocks below or above the stored ones", () => {
    expect(reviseConfirmations(list([5, 5]), list([3, 3], [4, 4], [5, 5]))).toEqual({
      kind: "extend",
      blocks: list([3, 3], [4, 4]),
    });
    expect(reviseConfirmations(list([1, 1]), list([7, 7]))).toEqual({ kind: "extend", blocks: list([7, 7]) });
  });

  it("is replaced from the first height with a different hash", () => {
    expect(reviseConfirmations(list([1, 1], [2, 2], [3, 3]), list([1, 1], [2, 9], [3, 8], [4, 7]))).toEqual({
      kind: "replace",
      fromNumber: 2,
      blocks: list([2, 9], [3, 8], [4, 7]),
    });
    expect(reviseConfirmations(list([1, 1], [2, 2], [3, 3]), list([1, 8]))).toEqual({
      kind: "replace",
      fromNumber: 1,
      blocks: list([1, 8]),
    });
  });
});

/** Applies a change to the stored confirmations as a store does. */
function apply(stored: readonly Confirmation[], change: ConfirmationChange): readonly Confirmation[] {
  if (change.kind === "same") return stored;
  const kept = change.kind === "replace" ? stored.filter(({ number }) => number < change.fromNumber) : stored;
  return [...kept, ...change.blocks].sort((a, b) => a.number - b.number);
}

describe("the stored list of confirming blocks, after any forks,", () => {
  it("contains exactly the blocks of the chain", () => {
    fc.assert(
      fc.property(forks, (steps) => {
        const chain = new NaiveChain(10);
        const canonical = (): readonly Confirmation[] => chain.blocks.map(({ number, hash }) => ({ number, hash }));
        let stored = canonical();
        for (const step of steps) {
          const { removed } = chain.fork(step);
          const seenAgain = removed.filter(({ number }) => number <= chain.tip.number);
          const change = reviseConfirmations(stored, canonical());
          expect(change.kind === "replace").toBe(seenAgain.length > 0);
          stored = apply(stored, change).filter(({ number }) => number <= chain.tip.number);
          expect(stored).toEqual(canonical());
        }
      }),
    );
  });

  it("does not change if an update is repeated", () => {
    fc.assert(
      fc.property(forks, fc.nat(5), (steps, missed) => {
        const chain = new NaiveChain(0, 5);
        const stored = chain.blocks.slice(0, 5 - missed);
        for (const step of steps) chain.fork(step);
        const after = apply(stored, reviseConfirmations(stored, chain.blocks));
        expect(reviseConfirmations(after, chain.blocks)).toEqual({ kind: "same" });
      }),
    );
  });
});
