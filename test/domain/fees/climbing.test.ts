import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextStep } from "../../../src/domain/fees/climbing.ts";
import { covers, higher, marketRepricing, reprice } from "../../../src/domain/fees/repricing.ts";
import { type Asked, type FeeMarket, type Fees, feeCap } from "../../../src/domain/transaction/fees.ts";

const GWEI = 1_000_000_000n;
const dynamic = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint): Fees => ({
  type: "eip1559",
  maxFeePerGas,
  maxPriorityFeePerGas,
});

/** All fees offered over time for a transaction that no block includes: the first offer, then each higher one. */
function climbed(first: Fees, market: FeeMarket): readonly Fees[] {
  const offers = [first];
  for (let standing = first; offers.length < 20; offers.push(standing)) {
    const step = nextStep(standing, market);
    if (step === null) return offers;
    standing = higher(standing, step);
  }
  return offers;
}

describe("the stepwise price increase", () => {
  it("does not start if the endpoints report the same fee market", () => {
    const market = { baseFees: [30n * GWEI], priorityFees: [GWEI], gasPrice: 31n * GWEI };
    expect(nextStep(dynamic(GWEI, 0n), market)).toBeNull();
  });

  it.each([
    [
      "tips",
      dynamic(14n, 0n),
      { baseFees: [7n], priorityFees: [0n], gasPrice: 7n },
      { baseFee: 7n, tip: GWEI, gasPrice: GWEI },
    ],
    [
      "base fees",
      dynamic(14n, 0n),
      { baseFees: [7n], priorityFees: [0n], gasPrice: 7n },
      { baseFee: 30n * GWEI, tip: GWEI, gasPrice: 31n * GWEI },
    ],
    [
      "gas prices",
      { type: "legacy", gasPrice: 1n } as const,
      { baseFees: [], priorityFees: [], gasPrice: 1n },
      { baseFee: 0n, tip: 0n, gasPrice: 5n * GWEI },
    ],
  ])(
    "reaches the higher of two fee reports in three increases if the lower report has false %s",
    (_, first, lower, dearer) => {
      const offers = climbed(first, { ...lower, dearer });
      expect(offers.length).toBeLessThanOrEqual(4);
      const price = first.type === "legacy" ? dearer.gasPrice : 2n * dearer.baseFee + dearer.tip;
      expect(feeCap(offers.at(-1) as Fees)).toBe(price);
    },
  );

  // protects [Sent again, priced again, stuck] src/domain/fees/climbing.ts, src/application/loops/tend.ts
  it("never exceeds the higher of two reported market prices", () => {
    const wei = fc.bigInt({ min: 0n, max: 10n ** 13n });
    fc.assert(
      fc.property(wei, wei, wei, wei, (baseFee, tip, moreTip, moreBase) => {
        // Skip a price of zero, because doubling it would not raise it.
        fc.pre(baseFee + tip > 0n);
        const dearer: Asked = {
          baseFee: baseFee + moreBase,
          tip: tip + moreTip,
          gasPrice: baseFee + tip + moreTip + moreBase,
        };
        const market = { baseFees: [baseFee], priorityFees: [tip], gasPrice: baseFee + tip, dearer };
        const first = dynamic(2n * baseFee + tip, tip);
        const [, second, ...rest] = climbed(first, market);
        if (second?.type !== "eip1559") return second === undefined;
        const most = dynamic(2n * dearer.baseFee + dearer.tip, dearer.tip);
        expect([second, ...rest].every((offer) => covers(higher(most, first), offer))).toBe(true);
        expect(rest.length).toBeLessThanOrEqual(2);
        return baseFee + second.maxPriorityFeePerGas <= 2n * (baseFee + tip);
      }),
    );
  });

  it("raises the price by at least the replacement minimum", () => {
    const market = { baseFees: [30n * GWEI], priorityFees: [GWEI], gasPrice: 31n * GWEI };
    const standing = dynamic(61n * GWEI, GWEI);
    const view = { first: standing, standing, refused: false, market, attempts: 1 };
    expect(reprice(marketRepricing, view, 100n * GWEI)).toEqual({ verdict: "keep" });
    const step = dynamic(61n * GWEI + 1n, GWEI + 1n);
    const raised = reprice(marketRepricing, { ...view, step }, 100n * GWEI);
    expect(raised).toMatchObject({ verdict: "reprice", fees: dynamic((671n * GWEI) / 10n, (11n * GWEI) / 10n) });
    expect(reprice(marketRepricing, { ...view, step }, 62n * GWEI)).toMatchObject({ verdict: "ceiling" });
  });
});

describe("a step of the price increase", () => {
  it.each([
    [
      "base fee",
      dynamic(22n, 2n),
      { baseFees: [10n], priorityFees: [2n], gasPrice: 12n, dearer: { baseFee: 1_000n, tip: 2n, gasPrice: 1_002n } },
      [22n, 42n, 284n, 2_002n],
    ],
    [
      "tip, and by the base fee that both report",
      dynamic(22n, 2n),
      { baseFees: [10n], priorityFees: [2n], gasPrice: 12n, dearer: { baseFee: 10n, tip: 1_000n, gasPrice: 1_010n } },
      [22n, 34n, 138n, 1_020n],
    ],
    [
      "gas price",
      { type: "legacy", gasPrice: 12n } as const,
      { baseFees: [], priorityFees: [], gasPrice: 12n, dearer: { baseFee: 0n, tip: 0n, gasPrice: 1_200n } },
      [12n, 24n, 169n, 1_200n],
    ],
  ])("doubles the %s at first, then takes the geometric mean", (_, first, market, caps) => {
    expect(climbed(first, market).map(feeCap)).toEqual(caps);
  });
});
