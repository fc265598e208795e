import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Holder, isFree, planShiftDown } from "../../../src/domain/nonces/holes.ts";

const at = (nonce: number, movable = true): Holder => ({ txId: `tx-${nonce}`, nonce, movable });
const moves = (free: readonly number[], holders: readonly Holder[]) =>
  planShiftDown(free, holders).map(({ from, to }) => [from, to]);

describe("moving transactions down into holes", () => {
  // protects [Holes] src/domain/nonces/holes.ts
  it("moves every transaction above a hole down by one, in order", () => {
    expect(moves([5], [at(6), at(7), at(8)])).toEqual([
      [6, 5],
      [7, 6],
      [8, 7],
    ]);
  });

  it("fills several holes, lowest first", () => {
    expect(moves([1, 3], [at(2), at(4), at(5)])).toEqual([
      [2, 1],
      [4, 2],
      [5, 3],
    ]);
  });

  it("does not move transactions below the hole", () => {
    expect(moves([5], [at(3), at(4)])).toEqual([]);
  });

  // protects [Holes] src/domain/nonces/holes.ts
  it("moves no transaction to a nonce below one whose signing has begun", () => {
    expect(moves([5], [at(6, false), at(7), at(8)])).toEqual([]);
    expect(moves([5], [at(6), at(7, false), at(8)])).toEqual([[6, 5]]);
    expect(moves([5, 9], [at(6, false), at(8), at(10)])).toEqual([[10, 9]]);
  });

  it("skips a reserved nonce: no transaction may use it", () => {
    expect(moves([5], [at(7), at(8)])).toEqual([
      [7, 5],
      [8, 7],
    ]);
  });

  it("keeps the order of the transactions", () => {
    const standing = fc.uniqueArray(
      fc.record({ nonce: fc.nat(40), kind: fc.constantFrom("free", "movable", "claimed", "reserved") }),
      { selector: ({ nonce }) => nonce, maxLength: 30 },
    );
    fc.assert(
      fc.property(standing, (slots) => {
        const free = slots.filter(({ kind }) => kind === "free").map(({ nonce }) => nonce);
        const holders = slots
          .filter(({ kind }) => kind === "movable" || kind === "claimed")
          .map(({ nonce, kind }) => at(nonce, kind === "movable"));
        const planned = planShiftDown(free, holders);
        const to = new Map(planned.map((move) => [move.txId, move.to]));
        const after = holders.map(({ txId, nonce }) => ({ txId, before: nonce, nonce: to.get(txId) ?? nonce }));
        const claimed = holders.filter(({ movable }) => !movable).map(({ nonce }) => nonce);
        const reserved = slots.filter(({ kind }) => kind === "reserved").map(({ nonce }) => nonce);
        // Each transaction has exactly one nonce, which no other transaction and no reservation holds.
        expect(new Set(after.map(({ nonce }) => nonce)).size).toBe(after.length);
        for (const { nonce } of after) expect(reserved).not.toContain(nonce);
        // Transactions keep their order and move only to lower nonces. None moves past a transaction that may not move.
        const byBefore = [...after].sort((a, b) => a.before - b.before).map(({ nonce }) => nonce);
        expect(byBefore).toEqual([...byBefore].sort((a, b) => a - b));
        for (const { txId, from, to: target } of planned) {
          expect(target).toBeLessThan(from);
          expect(claimed.some((nonce) => nonce > target && nonce < from)).toBe(false);
          expect(holders.find((holder) => holder.txId === txId)?.movable).toBe(true);
        }
        // If a nonce stays free, the next transaction above it may not move; otherwise it would have taken the free
        // nonce.
        const taken = new Set(after.map(({ nonce }) => nonce));
        const open = [...free, ...holders.map(({ nonce }) => nonce)].filter((nonce) => !taken.has(nonce));
        for (const nonce of open) {
          const next = [...after].sort((a, b) => a.nonce - b.nonce).find((holder) => holder.nonce > nonce);
          expect(next === undefined || claimed.includes(next.nonce)).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a hole in the nonces", () => {
  it("may be used by any transaction, unless an expired reservation left the hole", () => {
    expect(["released", "givenUp", "shiftedDown", "expired"].map((why) => isFree({ why: why as "expired" }))).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });
});
