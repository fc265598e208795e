import { describe, expect, it } from "vitest";
import type { FeeMarket, Fees } from "../../src/domain/fees.ts";
import { leastInPlaceOf, leastReplacement, reaches, replacementFees } from "../../src/domain/replacement.ts";
import { covers } from "../../src/domain/repricing.ts";

const market: FeeMarket = { baseFees: [100n, 100n], priorityFees: [5n], gasPrice: 120n };
const HIGH = 10n ** 30n;
const legacy = (gasPrice: bigint): Fees => ({ type: "legacy", gasPrice });
const dynamic = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint): Fees => ({
  type: "eip1559",
  maxFeePerGas,
  maxPriorityFeePerGas,
});

describe("the least that replaces", () => {
  it.each([
    [0n, 1n],
    [1n, 2n],
    [9n, 10n],
    [10n, 11n],
    [11n, 13n],
    [100n, 110n],
    [101n, 112n],
  ])("is a tenth over %d, rounded up, and never the same", (before, after) => {
    expect(leastReplacement(legacy(before))).toEqual(legacy(after));
    expect(leastReplacement(dynamic(1_000n, before))).toEqual(dynamic(1_100n, after));
  });

  it("keeps the envelope", () => {
    expect(leastReplacement({ type: "eip2930", gasPrice: 10n })).toEqual({ type: "eip2930", gasPrice: 11n });
  });
});

describe("what a decided payload pays", () => {
  it("follows the market where it is dearer than the minimum, field by field", () => {
    expect(replacementFees(dynamic(100n, 1n), market, HIGH)).toEqual(dynamic(205n, 5n));
    expect(replacementFees(dynamic(100n, 50n), market, HIGH)).toEqual(dynamic(205n, 55n));
    expect(replacementFees(legacy(100n), market, HIGH)).toEqual(legacy(120n));
  });

  it("is the minimum where the market fell below it: a decision is never kept back", () => {
    expect(replacementFees(dynamic(1_000n, 100n), market, HIGH)).toEqual(dynamic(1_100n, 110n));
    expect(replacementFees(legacy(1_000n), market, HIGH)).toEqual(legacy(1_100n));
  });

  it("stops at the ceiling: the market is cut there, a minimum above it is refused", () => {
    expect(replacementFees(dynamic(100n, 1n), market, 150n)).toEqual(dynamic(150n, 5n));
    expect(replacementFees(dynamic(100n, 1n), market, 110n)).toEqual(dynamic(110n, 5n));
    expect(replacementFees(dynamic(100n, 1n), market, 109n)).toBeNull();
    expect(replacementFees(legacy(100n), market, 109n)).toBeNull();
  });

  it("always covers what replaces the one before", () => {
    for (const fee of [0n, 1n, 7n, 10n, 99n, 12_345n, 10n ** 20n]) {
      for (const previous of [legacy(fee), dynamic(fee, fee), dynamic(fee + 3n, 0n)]) {
        const fees = replacementFees(previous, market, HIGH) as Fees;
        expect(covers(fees, leastReplacement(previous))).toBe(true);
      }
    }
  });
});

describe("a payload signed elsewhere in the place of another", () => {
  const blob = (cap: bigint, tip: bigint, blobFeeCap: bigint) => ({ fees: dynamic(cap, tip), blobFeeCap });
  const standing = blob(100n, 10n, 7n);

  it("offers a tenth more on both fields", () => {
    const least = leastInPlaceOf({ fees: dynamic(100n, 10n) });
    expect(reaches({ fees: dynamic(110n, 11n) }, least)).toBe(true);
    expect(reaches({ fees: dynamic(109n, 11n) }, least)).toBe(false);
    expect(reaches({ fees: dynamic(110n, 10n) }, least)).toBe(false);
  });

  it.each([
    [blob(200n, 20n, 14n), true],
    [blob(199n, 20n, 14n), false],
    [blob(200n, 19n, 14n), false],
    [blob(200n, 20n, 13n), false],
  ])("with blobs offers twice as much on each of three: case %#", (offered, enough) => {
    expect(reaches(offered, leastInPlaceOf(standing))).toBe(enough);
  });

  it("is of the same kind: no pool takes a blob for another payload, or another payload for a blob", () => {
    expect(reaches({ fees: dynamic(900n, 900n) }, leastInPlaceOf(standing))).toBe(false);
    expect(reaches(blob(900n, 900n, 900n), leastInPlaceOf({ fees: dynamic(100n, 10n) }))).toBe(false);
  });
});
