import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tipTaken } from "../../../src/domain/fees/repricing.ts";
import { lowerOf, type MarketWord } from "../../../src/domain/fees/two-markets.ts";
import { type FeeMarket, priceFirstAttempt, tipFor } from "../../../src/domain/transaction/fees.ts";

const GWEI = 1_000_000_000n;

function word(baseFee: bigint | null, priorityFees: readonly bigint[], gasPrice = (baseFee ?? 0n) + GWEI): MarketWord {
  const market: FeeMarket = { baseFees: baseFee === null ? [] : [baseFee], priorityFees, gasPrice };
  return { label: `endpoint ${gasPrice}`, market, baseFee };
}

const many = (tip: bigint) => Array.from({ length: 100 }, () => tip);

describe("the lower of two endpoints' fee reports", () => {
  // protects [Sent again, priced again, stuck] src/domain/fees/two-markets.ts
  it("has no higher median tip than either report", () => {
    const wei = fc.bigInt({ min: 0n, max: 10n ** 12n });
    const tips = fc.array(wei, { maxLength: 100 });
    fc.assert(
      fc.property(tips, tips, (honest, lied) => {
        const [a, b] = [word(30n * GWEI, honest), word(30n * GWEI, lied)];
        const market = lowerOf(a, b, { baseFee: 30n * GWEI }, []);
        expect(tipFor(market)).toBeLessThanOrEqual(tipFor(a.market));
        expect(tipFor(market)).toBeLessThanOrEqual(tipFor(b.market));
        expect(tipTaken(market)).toBeLessThanOrEqual(tipTaken(a.market));
        expect(tipTaken(market)).toBeLessThanOrEqual(tipTaken(b.market));
      }),
    );
  });

  it("contains the lower tips, whichever endpoint reports them", () => {
    const [cheap, dear] = [word(30n * GWEI, many(GWEI)), word(30n * GWEI, many(900n * GWEI))];
    for (const [a, b] of [
      [cheap, dear],
      [dear, cheap],
    ] as const) {
      expect(lowerOf(a, b, { baseFee: 30n * GWEI }, []).priorityFees).toEqual(many(GWEI));
    }
  });

  it("contains no tip of the newest blocks above what the other endpoint reports for them", () => {
    const risen = [...many(GWEI).slice(10), ...many(5n * GWEI).slice(90)];
    const market = lowerOf(word(30n * GWEI, risen), word(30n * GWEI, many(2n * GWEI)), { baseFee: 30n * GWEI }, []);
    expect(market.priorityFees).toEqual([...risen.slice(0, 90), ...many(2n * GWEI).slice(90)]);
  });

  it("does not mention the higher report if the reports differ by less than an eighth", () => {
    const market = lowerOf(
      word(30n * GWEI, many(GWEI)),
      word(31n * GWEI, many(2n * GWEI)),
      { baseFee: 30n * GWEI },
      [],
    );
    expect(market).not.toHaveProperty("dearer");
    expect(market).not.toHaveProperty("disputed");
  });

  it("also contains the higher report with limited tips", () => {
    const market = lowerOf(word(7n, many(0n), 7n), word(7n, many(900n * GWEI)), { baseFee: 7n }, []);
    expect(priceFirstAttempt(market, {}, null)).toMatchObject({ maxFeePerGas: 14n, maxPriorityFeePerGas: 0n });
    expect(market.dearer).toEqual({ baseFee: 7n, tip: 70n + GWEI, gasPrice: 7n + GWEI });
    expect(market.disputed).toEqual([
      "endpoint 7 asks 7 wei for a unit of gas",
      `endpoint ${7n + GWEI} asks ${7n + 900n * GWEI} wei for a unit of gas`,
    ]);
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/two-markets.ts
  it("contains the lower gas price on a chain without base fees", () => {
    const market = lowerOf(word(null, [], GWEI), word(null, [], 5n * GWEI), { baseFee: null }, []);
    expect(market).toMatchObject({ baseFees: [], priorityFees: [], gasPrice: GWEI, dearer: { gasPrice: 5n * GWEI } });
    expect(market.disputed).toHaveLength(2);
    const close = lowerOf(word(null, [], GWEI), word(null, [], 3n * GWEI), { baseFee: null }, []);
    expect(close).not.toHaveProperty("disputed");
  });

  it("contains no base fee if only one endpoint reports a base fee", () => {
    const market = lowerOf(word(null, [], GWEI), word(30n * GWEI, many(GWEI)), "none", ["a trouble"]);
    expect(market).toMatchObject({ baseFees: [], gasPrice: GWEI, disputed: ["a trouble", {}, {}] });
    expect(market).not.toHaveProperty("agreed");
  });
});
