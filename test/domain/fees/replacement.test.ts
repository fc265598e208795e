import { describe, expect, it } from "vitest";
import { leastInPlaceOf, leastReplacement, reaches } from "../../../src/domain/fees/repricing.ts";
import type { Fees } from "../../../src/domain/transaction/fees.ts";

const legacy = (gasPrice: bigint): Fees => ({ type: "legacy", gasPrice });
const dynamic = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint): Fees => ({
  type: "eip1559",
  maxFeePerGas,
  maxPriorityFeePerGas,
});

describe("the minimum price of a replacement", () => {
  it.each([
    [0n, 1n],
    [1n, 2n],
    [9n, 10n],
    [10n, 11n],
    [11n, 13n],
    [100n, 110n],
    [101n, 112n],
  ])("is a tenth above the current price (%d), rounded up", (before, after) => {
    expect(leastReplacement(legacy(before))).toEqual(legacy(after));
    expect(leastReplacement(dynamic(1_000n, before))).toEqual(dynamic(1_100n, after));
  });

  it("keeps the fee type", () => {
    expect(leastReplacement({ type: "eip2930", gasPrice: 10n })).toEqual({ type: "eip2930", gasPrice: 11n });
  });
});

describe("a replacement that was signed elsewhere", () => {
  const blob = (cap: bigint, tip: bigint, blobFeeCap: bigint) => ({ fees: dynamic(cap, tip), blobFeeCap });
  const standing = blob(100n, 10n, 7n);

  it("must pay at least a tenth more in both fee fields", () => {
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
  ])("with blobs must double each of three fee fields: case %#", (offered, enough) => {
    expect(reaches(offered, leastInPlaceOf(standing))).toBe(enough);
  });

  it("must be a blob transaction exactly if the original is a blob transaction", () => {
    expect(reaches({ fees: dynamic(900n, 900n) }, leastInPlaceOf(standing))).toBe(false);
    expect(reaches(blob(900n, 900n, 900n), leastInPlaceOf({ fees: dynamic(100n, 10n) }))).toBe(false);
  });
});
