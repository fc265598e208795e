import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  baseFeeNow,
  envelopeFor,
  type FeeMarket,
  type Fees,
  type FeeWishes,
  feeCap,
  isFullyPriced,
  isHopelessCap,
  median,
  priceFirstAttempt,
} from "../../../src/domain/transaction/fees.ts";

const GWEI = 1_000_000_000n;

function market(overrides: Partial<FeeMarket> = {}): FeeMarket {
  return {
    baseFees: [8n * GWEI, 10n * GWEI, 12n * GWEI],
    priorityFees: [GWEI, 2n * GWEI, 3n * GWEI],
    gasPrice: 14n * GWEI,
    ...overrides,
  };
}

const BEFORE_1559 = market({ baseFees: [], priorityFees: [] });

describe("the median of fees", () => {
  it.each([
    [[], 0n],
    [[5n], 5n],
    [[3n, 1n, 2n], 2n],
    [[1n, 9n, 2n, 8n], 8n],
    [[2n, 2n, 2n], 2n],
    [[10n ** 30n, 1n, 10n ** 20n], 10n ** 20n],
  ])("for %s is %s", (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it("has at most half of the fees on either side", () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: 0n, max: 10n ** 20n }), { minLength: 1 }), (values) => {
        const before = [...values];
        const middle = median(values);
        expect(values).toContain(middle);
        expect(values.filter((value) => value < middle).length).toBeLessThanOrEqual(values.length / 2);
        expect(values.filter((value) => value > middle).length).toBeLessThanOrEqual(values.length / 2);
        expect(values).toEqual(before);
      }),
    );
  });
});

describe("the first price of a transaction", () => {
  const cases: readonly [string, FeeMarket, FeeWishes, bigint | null, Fees][] = [
    [
      "follows the newest base fee, twice, and the median tip",
      market(),
      {},
      null,
      { type: "eip1559", maxFeePerGas: 26n * GWEI, maxPriorityFeePerGas: 2n * GWEI },
    ],
    [
      "tips one gwei if no block had transactions",
      market({ priorityFees: [] }),
      {},
      null,
      { type: "eip1559", maxFeePerGas: 25n * GWEI, maxPriorityFeePerGas: GWEI },
    ],
    [
      "is what an oracle offers, with its tip",
      market({ offer: { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI, isFixed: false } }),
      {},
      null,
      { type: "eip1559", maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI },
    ],
    [
      "has the market's tip if an oracle offers none",
      market({ offer: { maxFeePerGas: 40n * GWEI, isFixed: true } }),
      {},
      null,
      { type: "eip1559", maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI },
    ],
    [
      "is its caller's, whatever an oracle offers",
      market({ offer: { maxFeePerGas: 40n * GWEI, isFixed: true } }),
      { maxFeePerGas: 9n * GWEI, maxPriorityFeePerGas: GWEI },
      null,
      { type: "eip1559", maxFeePerGas: 9n * GWEI, maxPriorityFeePerGas: GWEI },
    ],
    [
      "is never what a false oracle offers: ten times what the blocks that were followed took bounds it",
      market({ offer: { maxFeePerGas: 4_000_000n * GWEI, maxPriorityFeePerGas: GWEI, isFixed: false } }),
      {},
      50n * GWEI,
      { type: "eip1559", maxFeePerGas: 50n * GWEI, maxPriorityFeePerGas: GWEI },
    ],
    [
      "is what the operator fixed, however much: the ceilings bound it elsewhere",
      market({ offer: { maxFeePerGas: 4_000n * GWEI, maxPriorityFeePerGas: GWEI, isFixed: true } }),
      {},
      50n * GWEI,
      { type: "eip1559", maxFeePerGas: 4_000n * GWEI, maxPriorityFeePerGas: GWEI },
    ],
    [
      "is an oracle's fee cap on a chain without a base fee",
      { ...BEFORE_1559, offer: { maxFeePerGas: 20n * GWEI, isFixed: true } },
      {},
      null,
      { type: "legacy", gasPrice: 20n * GWEI },
    ],
    ["is the gas price on a chain without a base fee", BEFORE_1559, {}, null, { type: "legacy", gasPrice: 14n * GWEI }],
    [
      "is dynamic there only if the caller wants it",
      BEFORE_1559,
      { type: "eip1559" },
      null,
      { type: "eip1559", maxFeePerGas: GWEI, maxPriorityFeePerGas: GWEI },
    ],
    ["is legacy if asked", market(), { type: "legacy" }, null, { type: "legacy", gasPrice: 14n * GWEI }],
    ["is of type 2930 if asked", market(), { type: "eip2930" }, null, { type: "eip2930", gasPrice: 14n * GWEI }],
    ["is the caller's gas price, whatever it is", market(), { gasPrice: 1n }, GWEI, { type: "legacy", gasPrice: 1n }],
    [
      "is the caller's gas price under type 2930 too",
      market(),
      { type: "eip2930", gasPrice: 7n },
      null,
      { type: "eip2930", gasPrice: 7n },
    ],
    [
      "is the caller's two fields, untouched, even above the ceiling",
      market(),
      { maxFeePerGas: 90n * GWEI, maxPriorityFeePerGas: 80n * GWEI },
      GWEI,
      { type: "eip1559", maxFeePerGas: 90n * GWEI, maxPriorityFeePerGas: 80n * GWEI },
    ],
    [
      "tips no more than the caller's cap",
      market(),
      { maxFeePerGas: GWEI },
      null,
      { type: "eip1559", maxFeePerGas: GWEI, maxPriorityFeePerGas: GWEI },
    ],
    [
      "makes room for the caller's tip",
      market(),
      { maxPriorityFeePerGas: 5n * GWEI },
      null,
      { type: "eip1559", maxFeePerGas: 29n * GWEI, maxPriorityFeePerGas: 5n * GWEI },
    ],
    [
      "is never below the caller's tip, whatever the ceiling: a node would refuse it",
      market(),
      { maxPriorityFeePerGas: 50n * GWEI },
      3n * GWEI,
      { type: "eip1559", maxFeePerGas: 50n * GWEI, maxPriorityFeePerGas: 50n * GWEI },
    ],
    [
      "stays under the ceiling, tip and all",
      market(),
      {},
      GWEI / 2n,
      { type: "eip1559", maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: GWEI / 2n },
    ],
    ["stays under the ceiling for legacy", market(), { type: "legacy" }, GWEI, { type: "legacy", gasPrice: GWEI }],
    [
      "does not believe one block a hundred times the others",
      market({ baseFees: [GWEI, GWEI, 1_000n * GWEI] }),
      {},
      null,
      { type: "eip1559", maxFeePerGas: 11n * GWEI, maxPriorityFeePerGas: 2n * GWEI },
    ],
    [
      "does not believe a gas price far above what blocks took",
      market({ gasPrice: 10_000n * GWEI }),
      { type: "legacy" },
      null,
      { type: "legacy", gasPrice: 101n * GWEI },
    ],
    [
      "does not believe tips far above what blocks took",
      market({ priorityFees: [9_000n * GWEI] }),
      {},
      null,
      { type: "eip1559", maxFeePerGas: 101n * GWEI, maxPriorityFeePerGas: 101n * GWEI },
    ],
    [
      "has no limit from blocks if the base fee is zero",
      market({ baseFees: [0n, 0n], gasPrice: 5n * GWEI }),
      { type: "legacy" },
      null,
      { type: "legacy", gasPrice: 5n * GWEI },
    ],
  ];

  it.each(cases)("follows the rule: %s", (_, given, wishes, ceiling, expected) => {
    expect(priceFirstAttempt(given, wishes, ceiling)).toEqual(expected);
  });

  const wei = fc.bigInt({ min: 0n, max: 10n ** 14n });
  const markets = fc.record({ baseFees: fc.array(wei), priorityFees: fc.array(wei), gasPrice: wei });
  const wishes: fc.Arbitrary<FeeWishes> = fc.oneof(
    fc.record({ type: fc.constantFrom("legacy" as const, "eip2930" as const) }),
    fc.record({ type: fc.constantFrom("legacy" as const, "eip2930" as const), gasPrice: wei }),
    fc.record({ gasPrice: wei }),
    fc.record(
      { type: fc.constant("eip1559" as const), maxFeePerGas: wei, maxPriorityFeePerGas: wei },
      { requiredKeys: [] },
    ),
  );

  it("never exceeds the ceiling unless the caller requested the fees", () => {
    fc.assert(
      fc.property(markets, wishes, fc.option(wei), (given, wanted, ceiling) => {
        const fees = priceFirstAttempt(given, wanted, ceiling);
        if (wanted.type !== undefined) expect(fees.type).toBe(wanted.type);
        if (fees.type !== "eip1559") {
          expect(fees.gasPrice).toBe(wanted.gasPrice ?? fees.gasPrice);
          if (wanted.gasPrice === undefined) expect(fees.gasPrice <= (ceiling ?? fees.gasPrice)).toBe(true);
          return;
        }
        expect(fees.maxPriorityFeePerGas <= fees.maxFeePerGas).toBe(true);
        expect(fees.maxPriorityFeePerGas).toBe(wanted.maxPriorityFeePerGas ?? fees.maxPriorityFeePerGas);
        const own = wanted.maxFeePerGas !== undefined || wanted.maxPriorityFeePerGas !== undefined;
        if (!own) expect(fees.maxFeePerGas <= (ceiling ?? fees.maxFeePerGas)).toBe(true);
        const usual = median(given.baseFees);
        if (!own && usual > 0n) expect(fees.maxFeePerGas <= usual * 10n + GWEI).toBe(true);
      }),
    );
  });

  it("covers the base fee after six full blocks, if no limit applies", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1_000n, max: 10n ** 13n }), (baseFee) => {
        const fees = priceFirstAttempt(market({ baseFees: [baseFee] }), {}, null);
        let risen = baseFee;
        for (let block = 0; block < 5; block++) risen += risen / 8n;
        expect(feeCap(fees) >= risen).toBe(true);
      }),
    );
  });
});

describe("the current base fee", () => {
  it.each<[string, readonly bigint[], bigint | undefined]>([
    ["is unknown on a chain without base fees", [], undefined],
    ["is the only block's", [5n], 5n],
    ["is the forecast of the next block", [9n, 3n, 5n], 5n],
    ["is the newest block's if the next is forecast to be cheaper", [9n, 5n, 4n], 5n],
  ])("follows the rule that it %s", (_, baseFees, now) => {
    expect(baseFeeNow(market({ baseFees }))).toBe(now);
  });
});

describe("the price computed from a fee market with invalid values", () => {
  it("is never negative", () => {
    const fees = priceFirstAttempt(market({ baseFees: [90n], priorityFees: [-70n, -70n] }), {}, null);
    expect(fees).toMatchObject({ maxFeePerGas: 180n, maxPriorityFeePerGas: 0n });
  });
});

describe("fees that the caller requested", () => {
  it.each<[FeeWishes, boolean]>([
    [{}, false],
    [{ type: "eip1559" }, false],
    [{ type: "legacy" }, false],
    [{ gasPrice: 0n }, true],
    [{ maxFeePerGas: 1n }, false],
    [{ maxPriorityFeePerGas: 1n }, false],
    [{ maxFeePerGas: 1n, maxPriorityFeePerGas: 0n }, true],
  ])("(%s) are complete without data of the fee market: %s", (wishes, expected) => {
    expect(isFullyPriced(wishes)).toBe(expected);
  });

  it("give the same price on every fee market if they are complete", () => {
    const nowhere: FeeMarket = { baseFees: [], priorityFees: [], gasPrice: 0n };
    for (const wishes of [{ gasPrice: 7n }, { maxFeePerGas: 9n, maxPriorityFeePerGas: 2n }]) {
      expect(priceFirstAttempt(nowhere, wishes, null)).toEqual(priceFirstAttempt(market(), wishes, 1n));
    }
  });

  it("cost at most the requested fee cap per gas", () => {
    expect(feeCap({ type: "eip1559", maxFeePerGas: 9n, maxPriorityFeePerGas: 1n })).toBe(9n);
    expect(feeCap({ type: "legacy", gasPrice: 7n })).toBe(7n);
    expect(feeCap({ type: "eip2930", gasPrice: 6n })).toBe(6n);
  });
});

describe("fees of a transaction with an access list", () => {
  it("have the type that allows one", () => {
    const legacy = { type: "legacy", gasPrice: 1n } as const;
    expect(envelopeFor(legacy, [{}])).toEqual({ ...legacy, type: "eip2930" });
    expect(envelopeFor(legacy, [])).toBe(legacy);
    const dynamic = { type: "eip1559", maxFeePerGas: 1n, maxPriorityFeePerGas: 1n } as const;
    expect(envelopeFor(dynamic, [{}])).toBe(dynamic);
  });
});

describe("a fee cap", () => {
  it("is hopeless below half of the base fee", () => {
    expect([4n, 5n, 9n].map((cap) => isHopelessCap(cap, 10n))).toEqual([true, false, false]);
  });
});
