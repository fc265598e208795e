import { describe, expect, it } from "vitest";
import type { FeeMarket, Fees } from "../../src/domain/fees.ts";
import { dearer, minimumReplacement, replacementFees, replaces } from "../../src/domain/repricing.ts";

const market: FeeMarket = { baseFees: [100n, 100n], priorityFees: [5n], gasPrice: 120n };
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
    expect(minimumReplacement(legacy(before))).toEqual(legacy(after));
    expect(minimumReplacement(dynamic(1_000n, before))).toEqual(dynamic(1_100n, after));
  });

  it("keeps the envelope", () => {
    expect(minimumReplacement({ type: "eip2930", gasPrice: 10n })).toEqual({ type: "eip2930", gasPrice: 11n });
  });
});

describe("replacement fees", () => {
  it("follow the market where it is dearer than the minimum, field by field", () => {
    expect(replacementFees(dynamic(100n, 1n), market, null)).toEqual(dynamic(205n, 5n));
    expect(replacementFees(dynamic(100n, 50n), market, null)).toEqual(dynamic(205n, 55n));
    expect(replacementFees(legacy(100n), market, null)).toEqual(legacy(120n));
  });

  it("take the minimum where the market fell below it", () => {
    expect(replacementFees(dynamic(1_000n, 100n), market, null)).toEqual(dynamic(1_100n, 110n));
    expect(replacementFees(legacy(1_000n), market, null)).toEqual(legacy(1_100n));
  });

  it("stop at the ceiling: the market is cut there, the minimum above it is refused", () => {
    expect(replacementFees(dynamic(100n, 1n), market, 150n)).toEqual(dynamic(150n, 5n));
    expect(replacementFees(dynamic(100n, 1n), market, 110n)).toEqual(dynamic(110n, 5n));
    expect(replacementFees(dynamic(100n, 1n), market, 109n)).toBeNull();
    expect(replacementFees(legacy(100n), market, 109n)).toBeNull();
  });

  it("always replace what was before", () => {
    for (const fee of [0n, 1n, 7n, 10n, 99n, 12_345n, 10n ** 20n]) {
      for (const previous of [legacy(fee), dynamic(fee, fee), dynamic(fee + 3n, 0n)]) {
        expect(replaces(replacementFees(previous, market, null) as Fees, previous)).toBe(true);
      }
    }
  });
});

describe("replaces", () => {
  it("wants both fields, not one", () => {
    expect(replaces(dynamic(110n, 11n), dynamic(100n, 10n))).toBe(true);
    expect(replaces(dynamic(109n, 11n), dynamic(100n, 10n))).toBe(false);
    expect(replaces(dynamic(500n, 10n), dynamic(100n, 10n))).toBe(false);
  });

  it("compares across envelopes as a pool does", () => {
    expect(replaces(legacy(110n), dynamic(100n, 10n))).toBe(true);
    expect(replaces(dynamic(110n, 11n), legacy(100n))).toBe(false);
    expect(replaces(dynamic(110n, 110n), legacy(100n))).toBe(true);
  });
});

it("refuses to compare a price with a pair", () => {
  expect(() => dearer(legacy(1n), dynamic(1n, 1n))).toThrow(TypeError);
});
