import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { actionPrice, type PriceInput } from "../../../src/domain/fees/action-price.ts";
import { covers, isBelowMarket, leastReplacement } from "../../../src/domain/fees/repricing.ts";
import { type FeeMarket, type Fees, feeCap } from "../../../src/domain/transaction/fees.ts";

const GWEI = 1_000_000_000n;
const HIGH = 10n ** 30n;
const WIDE = { relative: HIGH, absolute: HIGH };

const legacy = (gasPrice: bigint, type: "legacy" | "eip2930" = "legacy"): Fees => ({ type, gasPrice });
const dynamic = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint): Fees => ({
  type: "eip1559",
  maxFeePerGas,
  maxPriorityFeePerGas,
});

const MARKET: FeeMarket = { baseFees: [100n, 100n], priorityFees: [5n], gasPrice: 120n };

function input(standing: Fees | null, more: Partial<PriceInput> = {}): PriceInput {
  return { like: standing ?? dynamic(0n, 0n), standing, market: MARKET, seenBaseFees: [100n], ...more };
}

function offered(made: PriceInput, limits = WIDE): Fees {
  const price = actionPrice(made, limits);
  if (price.verdict !== "offer") throw new Error(price.verdict);
  return price.fees;
}

describe("the automatic price of a replacement", () => {
  it.each<[string, Fees | null, Fees]>([
    ["follows the market if that is above the minimum", dynamic(100n, 1n), dynamic(205n, 5n)],
    ["follows it field by field", dynamic(100n, 50n), dynamic(205n, 55n)],
    ["is the minimum if the market fell below it", dynamic(1_000n, 100n), dynamic(1_100n, 110n)],
    ["is the market's if there is no current offer", null, dynamic(205n, 5n)],
    ["stays legacy", legacy(100n), legacy(120n)],
    ["keeps the envelope of an access list", legacy(1_000n, "eip2930"), legacy(1_100n, "eip2930")],
  ])("follows the rule that it %s", (_, standing, fees) => {
    expect(offered(input(standing))).toEqual(fees);
  });

  it("uses another fee type if requested", () => {
    expect(offered(input(legacy(100n), { like: dynamic(0n, 0n) }))).toEqual(dynamic(205n, 110n));
    expect(offered(input(dynamic(200n, 5n), { like: legacy(0n) }))).toEqual(legacy(220n));
  });

  it("is at most twice the base fee plus the tip for legacy payloads", () => {
    expect(offered(input(legacy(1n), { market: { ...MARKET, gasPrice: 7n } }))).toEqual(legacy(105n));
    expect(offered(input(legacy(1n), { market: { ...MARKET, gasPrice: HIGH } }))).toEqual(legacy(205n));
  });

  it("does not rely on a predicted fall of the base fee", () => {
    const market = { ...MARKET, baseFees: [100n, 88n], gasPrice: 0n };
    expect(offered(input(legacy(1n), { market }))).toEqual(legacy(105n));
    expect(offered(input(dynamic(1n, 1n), { market }))).toEqual(dynamic(205n, 5n));
  });

  it("includes a tip even if no block shows one", () => {
    expect(offered(input(null, { market: { ...MARKET, priorityFees: [] } }))).toEqual(dynamic(200n + GWEI, GWEI));
  });

  it.each([
    [150n, dynamic(150n, 5n)],
    [110n, dynamic(110n, 5n)],
  ])("is limited by the ceiling of %d", (absolute, fees) => {
    expect(offered(input(dynamic(100n, 1n)), { relative: absolute, absolute })).toEqual(fees);
  });

  it("is refused if the replacement minimum is above the limit", () => {
    const limits = { relative: 109n, absolute: 109n };
    expect(actionPrice(input(dynamic(100n, 1n)), limits)).toEqual({ verdict: "tooDear", least: 110n });
    expect(actionPrice(input(legacy(100n)), limits)).toEqual({ verdict: "tooDear", least: 110n });
  });

  it("is refused above its limit if the market is lower", () => {
    const limits = { relative: 400n, absolute: 10_000n };
    expect(actionPrice(input(dynamic(400n, 5n)), limits)).toEqual({ verdict: "tooDear", least: 440n });
    expect(offered(input(dynamic(360n, 5n)), limits)).toEqual(dynamic(396n, 6n));
  });
});

describe("a base fee above the limit of automatic pricing", () => {
  const limits = { relative: 70n, absolute: 10_000n };
  const dear = { ...MARKET, baseFees: [7n, 7n, 300n], gasPrice: 330n };

  it.each<[string, readonly bigint[]]>([
    ["as much", [7n, 300n]],
    ["half of it", [7n, 150n]],
    ["more", [7n, 900n]],
  ])("is trusted if the base fee of the newest block was %s", (_, seenBaseFees) => {
    expect(offered(input(dynamic(14n, 1n), { market: dear, seenBaseFees }), limits)).toEqual(dynamic(605n, 5n));
    expect(offered(input(legacy(14n), { market: dear, seenBaseFees }), limits)).toEqual(legacy(330n));
  });

  it.each<[string, readonly bigint[]]>([
    ["the newest block had less than half of it", [300n, 149n]],
    ["no block was followed", []],
  ])("is not trusted if %s", (_, seenBaseFees) => {
    const made = input(dynamic(14n, 1n), { market: dear, seenBaseFees });
    expect(actionPrice(made, limits)).toEqual({
      verdict: "unconfirmed",
      needed: dynamic(605n, 5n),
      allowed: dynamic(70n, 5n),
    });
    const stuck = input(dynamic(70n, 1n), { market: dear, seenBaseFees });
    expect(actionPrice(stuck, limits)).toMatchObject({ verdict: "unconfirmed", allowed: null });
  });

  it("needs no confirmation if that limit equals the ceiling", () => {
    const made = input(dynamic(14n, 1n), { market: dear, seenBaseFees: [7n] });
    expect(offered(made, { relative: 400n, absolute: 10_000n })).toEqual(dynamic(400n, 5n));
    expect(offered(made, { relative: 70n, absolute: 70n })).toEqual(dynamic(70n, 5n));
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/action-price.ts, src/application/detours/reprice.ts
  it("raises neither the tip nor the price of a repeated request", () => {
    const greedy = { ...dear, priorityFees: [HIGH] };
    const seenBaseFees = [300n];
    expect(offered(input(dynamic(14n, 1n), { market: greedy, seenBaseFees }), limits)).toEqual(dynamic(670n, 70n));
    expect(actionPrice(input(dynamic(670n, 70n), { market: greedy, seenBaseFees }), limits)).toEqual({
      verdict: "tooDear",
      least: 737n,
    });
  });

  it("allows a replacement if the current price is below the market price", () => {
    const seenBaseFees = [300n];
    const market = { ...dear, gasPrice: 0n };
    expect(offered(input(legacy(304n), { market, seenBaseFees }), limits)).toEqual(legacy(335n));
    expect(actionPrice(input(legacy(305n), { market, seenBaseFees }), limits).verdict).toBe("tooDear");
  });
});

describe("the gas price of a chain without base fees", () => {
  const market = { baseFees: [], priorityFees: [], gasPrice: 50n };

  it.each([legacy(10n), dynamic(10n, 1n)])(
    "is trusted only up to the limit of automatic pricing: case %#",
    (standing) => {
      const made = input(standing, { market, seenBaseFees: [] });
      expect(feeCap(offered(made, { relative: 50n, absolute: 900n }))).toBe(50n);
      expect(actionPrice(made, { relative: 49n, absolute: 900n })).toMatchObject({ verdict: "unconfirmed" });
    },
  );
});

describe("a gas oracle's price", () => {
  const limits = { relative: 400n, absolute: 10_000n };
  const advising = (maxFeePerGas: bigint, isFixed: boolean) => ({ ...MARKET, offer: { maxFeePerGas, isFixed } });

  it.each<[string, bigint, boolean, Fees]>([
    ["is followed above the market", 300n, false, dynamic(300n, 5n)],
    ["is not above the limit of the repricing loop", 5_000n, false, dynamic(400n, 5n)],
    ["is ignored if it is below what blocks require", 20n, false, dynamic(205n, 5n)],
    ["is exempt from that limit if the operator fixed it", 5_000n, true, dynamic(5_000n, 5n)],
  ])("follows the rule: %s", (_, cap, isFixed, fees) => {
    expect(offered(input(dynamic(14n, 1n), { market: advising(cap, isFixed) }), limits)).toEqual(fees);
  });

  it("is trusted without confirmation by the market if the oracle is the operator's own", () => {
    const market = { ...advising(500n, true), baseFees: [9_000n] };
    expect(offered(input(dynamic(14n, 1n), { market }), limits)).toEqual(dynamic(500n, 5n));
  });
});

describe("the price of a requested replacement, for any endpoint response,", () => {
  const wei = fc.bigInt({ min: 0n, max: 10n ** 15n });
  const fees: fc.Arbitrary<Fees> = fc.oneof(
    fc.tuple(wei, wei).map(([cap, tip]) => dynamic(cap + tip, tip)),
    wei.map((gasPrice) => legacy(gasPrice)),
  );
  const market: fc.Arbitrary<FeeMarket> = fc.record({
    baseFees: fc.array(wei, { maxLength: 5 }),
    priorityFees: fc.array(wei, { maxLength: 5 }),
    gasPrice: wei,
  });

  it("is at most the ceiling and at least the replacement minimum", () => {
    fc.assert(
      fc.property(fees, market, fc.array(wei, { maxLength: 5 }), wei, wei, (standing, said, seenBaseFees, a, b) => {
        const [relative, absolute] = a < b ? [a, b] : [b, a];
        const price = actionPrice(input(standing, { market: said, seenBaseFees }), { relative, absolute });
        if (price.verdict === "tooDear") return;
        const made = price.verdict === "offer" ? price.fees : price.allowed;
        if (made === null) return;
        expect(feeCap(made)).toBeLessThanOrEqual(absolute);
        expect(covers(made, leastReplacement(standing))).toBe(true);
        if (price.verdict === "unconfirmed") expect(feeCap(made)).toBeLessThanOrEqual(relative);
      }),
    );
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/action-price.ts, src/application/detours/reprice.ts
  it("covers the newest block's base fee if allowed by the ceiling", () => {
    fc.assert(
      fc.property(fees, wei, fc.array(wei, { maxLength: 100 }), wei, (standing, baseFee, before, tip) => {
        // A base fee falls by at most an eighth from block to block (EIP-1559).
        fc.pre(feeCap(standing) > 0n && (before.at(-1) ?? 0n) * 7n <= baseFee * 8n);
        const seenBaseFees = [...before, baseFee];
        const said = { baseFees: [...before, baseFee], priorityFees: [tip], gasPrice: 0n };
        const relative = feeCap(standing) * 5n;
        const made = offered(input(standing, { market: said, seenBaseFees }), { relative, absolute: HIGH });
        expect(isBelowMarket(made, { ...said, priorityFees: [tip < relative ? tip : relative] })).toBe(false);
      }),
    );
  });
});
