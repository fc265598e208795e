import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FencepostError } from "../../../src/domain/errors.ts";
import {
  bounded,
  type CeilingSettings,
  type Ceilings,
  type Content,
  ceilingsOf,
  type FeeLimit,
  feeLimit,
  limitInWords,
  priceUnder,
  refuseOverCeiling,
  repricingLimit,
  worstCost,
} from "../../../src/domain/fees/ceilings.ts";
import { CEILING_GROUPS, UNKNOWN_CHAIN } from "../../../src/domain/fees/default-ceilings.ts";
import { type Fees, type FeeWishes, feeCap } from "../../../src/domain/transaction/fees.ts";
import type { UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";

const GWEI = 1_000_000_000n;
const ETHER = 10n ** 18n;
const NOTHING: CeilingSettings = { maxFeeWei: null, maxGasCostWei: null, maxCostWei: null };

function ceilings(settings: Partial<CeilingSettings> = {}, chainId = 31_337): Ceilings {
  return ceilingsOf(chainId, { ...NOTHING, ...settings });
}

function dynamic(maxFeePerGas: bigint, maxPriorityFeePerGas = 1n): Fees {
  return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas };
}

function refusal(work: () => unknown): FencepostError | null {
  try {
    work();
    return null;
  } catch (error) {
    if (error instanceof FencepostError) return error;
    throw error;
  }
}

describe("the fee ceilings of a chain", () => {
  it.each([
    [1, 500n * GWEI, ETHER],
    [10, 100n * GWEI, ETHER / 10n],
    [30, GWEI, ETHER / 1_000n],
    [137, 5_000n * GWEI, 50n * ETHER],
    [56, 100n * GWEI, ETHER / 10n],
    [43_114, 1_000n * GWEI, 5n * ETHER],
    [314, 100n * GWEI, 10n * ETHER],
    [11_155_111, 5_000n * GWEI, 50n * ETHER],
    [31_337, 1_000n * GWEI, ETHER],
    [424_242, 100n * GWEI, ETHER / 10n],
  ])("for chain id %s are the built-in ones: %s wei per gas, %s wei of gas cost", (chainId, feePerGas, gasCost) => {
    expect(ceilings({}, chainId)).toEqual({ feePerGas, isFeeSet: false, gasCost, cost: null });
  });

  it("can be configured independently of each other", () => {
    expect(ceilings({ maxFeeWei: 7n }, 1)).toEqual({ feePerGas: 7n, isFeeSet: true, gasCost: ETHER, cost: null });
    expect(ceilings({ maxGasCostWei: 0n }, 1)).toMatchObject({ feePerGas: 500n * GWEI, gasCost: 0n });
    expect(ceilings({ maxCostWei: 9n }, 1)).toMatchObject({ isFeeSet: false, cost: 9n });
  });

  it("allow a plain transfer at the maximum fee on any chain", () => {
    for (const group of [...CEILING_GROUPS, UNKNOWN_CHAIN]) {
      expect(21_000n * group.feeGwei * GWEI).toBeLessThanOrEqual((group.gasCostMilli * ETHER) / 1_000n);
    }
  });

  it("are listed once for each chain", () => {
    const listed = CEILING_GROUPS.flatMap(({ chainIds }) => chainIds);
    expect(listed).toHaveLength(new Set(listed).size);
  });

  it("in docs/configuration.md equal those in the code", () => {
    const [, section = ""] = readFileSync("docs/configuration.md", "utf8").split("## Ceilings");
    const rows = [...section.matchAll(/^\| (.+) \| ([\d, ]*|all others) \| ([\d,]+) \| ([\d,.]+) \|$/gm)];
    const number = (text: string) => BigInt(text.replaceAll(",", ""));
    const milli = (text: string) => BigInt(Math.round(Number(text.replaceAll(",", "")) * 1_000));
    const documented = rows.map(([, what, ids = "", fee = "", cost = ""]) => ({
      ...(ids === "all others" ? {} : { what, chainIds: ids.split(", ").map(Number) }),
      ...{ feeGwei: number(fee), gasCostMilli: milli(cost) },
    }));
    const known = CEILING_GROUPS.map((group) => ({ ...group, chainIds: [...group.chainIds] }));
    expect(documented).toEqual([...known, UNKNOWN_CHAIN]);
  });
});

describe("the highest price per gas under the ceilings", () => {
  const own = ceilings({ maxFeeWei: 100n, maxGasCostWei: 10_000n, maxCostWei: 15_000n });
  it.each<[string, Ceilings, Content, FeeLimit]>([
    ["is the fee ceiling", own, { gas: 10n, value: 0n }, { most: 100n, variable: "FENCEPOST_MAX_FEE_GWEI" }],
    ["is lower for more gas", own, { gas: 101n, value: 0n }, { most: 99n, variable: "FENCEPOST_MAX_GAS_COST_WEI" }],
    [
      "is what the value leaves of the cost ceiling",
      own,
      { gas: 100n, value: 6_000n },
      { most: 90n, variable: "FENCEPOST_MAX_COST_WEI" },
    ],
    ["may be zero", own, { gas: 100n, value: 15_000n }, { most: 0n, variable: "FENCEPOST_MAX_COST_WEI" }],
    [
      "is negative if the value alone is too high",
      own,
      { gas: 1n, value: 15_001n },
      { most: -1n, variable: "FENCEPOST_MAX_COST_WEI" },
    ],
    [
      "includes the cost of blobs",
      own,
      { gas: 100n, value: 0n, blobCost: 9_000n },
      { most: 10n, variable: "FENCEPOST_MAX_GAS_COST_WEI" },
    ],
    [
      "does not limit the value without a setting",
      ceilings({ maxFeeWei: 100n }),
      { gas: 10n, value: ETHER * ETHER },
      { most: 100n, variable: "FENCEPOST_MAX_FEE_GWEI" },
    ],
  ])("follows the rule that it %s", (_, given, content, expected) => {
    expect(feeLimit(given, content)).toEqual(expected);
  });

  it("is at most five times the first price for a replacement", () => {
    const transfer = { gas: 21_000n, value: 0n };
    expect(repricingLimit(ceilings(), transfer, dynamic(7n * GWEI))).toEqual({
      ...{ most: 35n * GWEI, variable: "FENCEPOST_MAX_FEE_GWEI", timesFirst: 5n },
    });
    expect(repricingLimit(ceilings(), transfer, dynamic(300n * GWEI)).most).toBe(1_000n * GWEI);
    expect(repricingLimit(ceilings({ maxFeeWei: 90n * GWEI }), transfer, dynamic(7n * GWEI)).most).toBe(90n * GWEI);
    expect(repricingLimit(ceilings({ maxGasCostWei: 21_000n }), transfer, dynamic(7n * GWEI))).toEqual({
      ...{ most: 1n, variable: "FENCEPOST_MAX_GAS_COST_WEI" },
    });
  });

  it("is reported with the environment variable that changes it", () => {
    expect(limitInWords({ most: 7n, variable: "FENCEPOST_MAX_COST_WEI" })).toBe(
      "the ceiling of 7 wei per gas (FENCEPOST_MAX_COST_WEI)",
    );
    expect(limitInWords({ most: 35n, variable: "FENCEPOST_MAX_FEE_GWEI", timesFirst: 5n })).toBe(
      "the ceiling of 35 wei per gas (5 times its first price; FENCEPOST_MAX_FEE_GWEI sets another)",
    );
    expect(limitInWords({ most: -1n, variable: "FENCEPOST_MAX_COST_WEI" })).toContain("of 0 wei");
  });
});

describe("the ceiling check of fees that a caller requested", () => {
  const own = ceilings({ maxFeeWei: 100n, maxGasCostWei: 10_000n, maxCostWei: 15_000n });
  it.each<[string, FeeWishes, Content, RegExp | null]>([
    ["at the ceiling", { maxFeePerGas: 100n, maxPriorityFeePerGas: 100n }, { gas: 100n, value: 5_000n }, null],
    ["none", {}, { gas: 1n, value: 0n }, null],
    [
      "a cap above it",
      { maxFeePerGas: 101n },
      { gas: 1n, value: 0n },
      /101 wei per gas .* 100 \(FENCEPOST_MAX_FEE_GWEI\)/,
    ],
    ["a tip above it", { maxPriorityFeePerGas: 101n }, { gas: 1n, value: 0n }, /FENCEPOST_MAX_FEE_GWEI/],
    ["a gas price above it", { gasPrice: 101n }, { gas: 1n, value: 0n }, /FENCEPOST_MAX_FEE_GWEI/],
    [
      "for too much gas",
      { gasPrice: 51n },
      { gas: 200n, value: 0n },
      /gas 200 x fee cap 51 = 10200 wei is above the ceiling of 10000 \(FENCEPOST_MAX_GAS_COST_WEI\)/,
    ],
    [
      "beside too much value",
      { gasPrice: 50n },
      { gas: 200n, value: 5_001n },
      /value 5001 .* = 15001 wei is above the ceiling of 15000 \(FENCEPOST_MAX_COST_WEI\)/,
    ],
    ["none, beside too much value", {}, { gas: 200n, value: 15_001n }, /FENCEPOST_MAX_COST_WEI/],
    [
      "beside dear blobs",
      { gasPrice: 1n },
      { gas: 1n, value: 0n, blobCost: 10_000n },
      /gas 1 x fee cap 1 \+ blobs 10000 = 10001 wei/,
    ],
  ])("has the expected result for fees: %s", (_, wishes, content, words) => {
    const error = refusal(() => refuseOverCeiling(own, content, wishes));
    if (words === null) expect(error).toBeNull();
    else {
      expect(error).toMatchObject({ code: "SUBMISSION_REJECTED", extras: { reason: "FEE_OVER_CEILING" } });
      expect(error?.message).toMatch(words);
    }
  });
});

describe("the fee ceilings, for any input,", () => {
  const amount = fc.bigInt({ min: 0n, max: 10n ** 24n });
  const settings = fc.record({
    ...{ maxFeeWei: fc.option(amount), maxGasCostWei: fc.option(amount), maxCostWei: fc.option(amount) },
  });
  const content = fc.record({ gas: fc.bigInt({ min: 21_000n, max: 60_000_000n }), value: amount });
  const wanted: fc.Arbitrary<Fees> = fc.oneof(
    fc.record({ type: fc.constantFrom("legacy" as const, "eip2930" as const), gasPrice: amount }),
    fc.tuple(amount, amount).map(([a, b]): Fees => dynamic(a > b ? a : b, a > b ? b : a)),
  );
  const chainId = fc.constantFrom(1, 10, 30, 137, 314, 369, 31_337, 424_242);

  it("lower a price no more than needed", () => {
    fc.assert(
      fc.property(chainId, settings, content, wanted, (id, given, what, fees) => {
        const own = ceilingsOf(id, given);
        const { most } = feeLimit(own, what);
        const priced = priceUnder(own, what, fees);
        const cap = feeCap(priced.fees);
        expect(priced.reached === null).toBe(feeCap(fees) <= most);
        expect(cap).toBe(most < 0n ? 0n : feeCap(fees) <= most ? feeCap(fees) : most);
        expect(priced.fees.type).toBe(fees.type);
        if (priced.fees.type === "eip1559") expect(priced.fees.maxPriorityFeePerGas <= cap).toBe(true);
        if (most < 0n) return;
        expect(cap <= own.feePerGas).toBe(true);
        expect(what.gas * cap <= own.gasCost).toBe(true);
        if (own.cost !== null) expect(what.value + what.gas * cap <= own.cost).toBe(true);
        expect(bounded(own, unsigned(what, priced.fees))).toMatchObject({ fees: priced.fees });
      }),
    );
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/ceilings.ts, src/ports/signer.ts
  it("let no fees above any ceiling pass the check", () => {
    fc.assert(
      fc.property(chainId, settings, content, wanted, (id, given, what, fees) => {
        const own = ceilingsOf(id, given);
        const cost = what.gas * feeCap(fees);
        const isOver =
          feeCap(fees) > own.feePerGas || cost > own.gasCost || (own.cost !== null && what.value + cost > own.cost);
        expect(refusal(() => bounded(own, unsigned(what, fees))) !== null).toBe(isOver);
      }),
    );
  });
});

function unsigned({ gas, value }: Content, fees: Fees): UnsignedTransaction {
  return { chainId: 1, nonce: 0, to: `0x${"b".repeat(40)}`, data: "0x", value, gas, fees, accessList: [] };
}

describe("the ceiling of a transaction's cost", () => {
  it("covers value and blobs", () => {
    const limit = feeLimit(ceilings({ maxCostWei: 1_000n }), { gas: 10n, value: 100n, blobCost: 400n });
    expect(limit).toMatchObject({ most: 50n, variable: "FENCEPOST_MAX_COST_WEI" });
  });

  it("bounds the most that a transaction costs, as the ceiling of gas does", () => {
    const set = ceilings({ maxFeeWei: 7n, maxGasCostWei: 50n });
    expect([5n, 10n, undefined].map((gas) => worstCost(set, { value: 100n, ...(gas && { gas }) }))).toEqual([
      135n,
      150n,
      150n,
    ]);
    const costly = { ...set, cost: 120n };
    expect([100n, 121n].map((value) => worstCost(costly, { value, gas: 10n }))).toEqual([120n, 171n]);
  });
});
