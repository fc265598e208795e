import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  covers,
  guardedRepricing,
  highestOffer,
  isBelowMarket,
  linearRepricing,
  marketRepricing,
  REPRICING_STRATEGIES,
  type RepricingStrategy,
  type RepricingView,
  reprice,
} from "../../../src/domain/fees/repricing.ts";
import { type FeeMarket, type Fees, feeCap } from "../../../src/domain/transaction/fees.ts";
import type { Attempt } from "../../../src/domain/transaction/transaction.ts";

const GWEI = 1_000_000_000n;

function dynamic(cap: bigint, tip: bigint): Fees {
  return { type: "eip1559", maxFeePerGas: cap * GWEI, maxPriorityFeePerGas: tip * GWEI };
}

function legacy(price: bigint, type: "legacy" | "eip2930" = "legacy"): Fees {
  return { type, gasPrice: price * GWEI };
}

function market(baseFee: bigint | null, tips: readonly bigint[] = [], gasPrice = 0n): FeeMarket {
  const baseFees = baseFee === null ? [] : [1n * GWEI, baseFee * GWEI];
  return { baseFees, priorityFees: tips.map((tip) => tip * GWEI), gasPrice: gasPrice * GWEI };
}

function view(standing: Fees, overrides: Partial<RepricingView> = {}): RepricingView {
  return { first: standing, standing, refused: false, market: market(10n), attempts: 1, ...overrides };
}

const PLENTY = 10n ** 24n;

describe("the `market` repricing strategy", () => {
  it.each<[string, Fees, FeeMarket]>([
    ["covers the base fee and tips like the last blocks", dynamic(30n, 2n), market(10n, [1n, 2n])],
    ["covers the base fee if blocks have no tips", dynamic(10n, 1n), market(10n)],
    ["is legacy and pays the base fee and the tip", legacy(12n), market(10n, [2n])],
    ["is legacy on a chain without base fees, at its price", legacy(5n), market(null, [], 5n)],
  ])("keeps the offered fees if the offer %s", (_, standing, now) => {
    expect(isBelowMarket(standing, now)).toBe(false);
    expect(reprice(marketRepricing, view(standing, { market: now }), PLENTY)).toEqual({ verdict: "keep" });
  });

  it.each<[string, Fees, FeeMarket, Fees]>([
    ["is under the base fee", dynamic(20n, 1n), market(40n, [1n]), dynamic(81n, 1n)],
    ["leaves no room for the tip that is taken", dynamic(20n, 3n), market(19n, [2n]), dynamic(40n, 2n)],
    ["tips less than the last blocks took", dynamic(100n, 1n), market(10n, [5n]), dynamic(25n, 5n)],
    ["is legacy and under the base fee", legacy(20n), market(40n, [1n], 41n), legacy(41n)],
    [
      "has an access list and keeps its envelope",
      legacy(20n, "eip2930"),
      market(40n, [1n], 41n),
      legacy(41n, "eip2930"),
    ],
    ["is legacy and under the gas price of an old chain", legacy(2n), market(null, [], 9n), legacy(9n)],
    ["is dynamic on a chain that shows no base fee", dynamic(2n, 1n), market(null, [], 9n), dynamic(9n, 9n)],
  ])("raises the fees to the market price if the offered fee %s", (_, standing, now, wanted) => {
    expect(isBelowMarket(standing, now)).toBe(true);
    const verdict = reprice(marketRepricing, view(standing, { market: now }), PLENTY);
    if (verdict.verdict !== "reprice") throw new Error(verdict.verdict);
    expect(verdict.fees.type).toBe(standing.type);
    expect(covers(verdict.fees, wanted)).toBe(true);
    expect(feeCap(verdict.fees) * 10n).toBeGreaterThanOrEqual(feeCap(standing) * 11n);
  });

  it("also raises a tip that is above the market", () => {
    const verdict = reprice(marketRepricing, view(dynamic(20n, 8n), { market: market(40n, [1n]) }), PLENTY);
    expect(verdict).toMatchObject({ fees: { maxPriorityFeePerGas: 8_800_000_000n } });
  });

  it("also raises a zero tip, by the minimum", () => {
    const verdict = reprice(marketRepricing, view(dynamic(20n, 0n), { market: market(40n) }), PLENTY);
    expect(verdict).toMatchObject({ fees: { maxPriorityFeePerGas: 1n } });
  });

  it("raises the offered fees by more than a tenth if an endpoint refused them", () => {
    const standing = dynamic(100n, 10n);
    expect(isBelowMarket(standing, market(10n))).toBe(false);
    const verdict = reprice(marketRepricing, view(standing, { refused: true }), PLENTY);
    expect(verdict).toMatchObject({ fees: { maxFeePerGas: 125n * GWEI, maxPriorityFeePerGas: 12_500_000_000n } });
  });

  it("offers the market's price if a refused price is far below it", () => {
    const refused = view(dynamic(10n, 1n), { refused: true, market: market(100n, [3n]) });
    expect(marketRepricing.propose(refused)).toEqual(dynamic(203n, 3n));
  });

  it("offers no tip above the recommended fee cap", () => {
    const offer = { maxFeePerGas: 5n * GWEI, maxPriorityFeePerGas: 9n * GWEI, isFixed: true };
    expect(marketRepricing.propose(view(dynamic(1n, 1n), { market: { ...market(10n, [1n]), offer } }))).toEqual(
      dynamic(5n, 5n),
    );
  });

  // protects [Sent again, priced again, stuck] src/domain/transaction/fees.ts
  it("uses the base fee of the newest block, not a predicted fall", () => {
    const falling = { ...market(30n, [1n]), baseFees: [30n * GWEI, 26n * GWEI] };
    const verdict = reprice(marketRepricing, view(legacy(28n), { market: falling }), PLENTY);
    expect(verdict).toMatchObject({ verdict: "reprice", fees: legacy(31n) });
    expect(reprice(marketRepricing, view(legacy(31n), { market: falling }), PLENTY).verdict).toBe("keep");
  });

  it("uses the tips of the newest blocks, not of older ones", () => {
    const tips = [...Array.from({ length: 90 }, () => 50n), ...Array.from({ length: 10 }, () => 1n)];
    expect(isBelowMarket(dynamic(100n, 2n), market(10n, tips))).toBe(false);
    expect(isBelowMarket(dynamic(100n, 2n), market(10n, [...tips].reverse()))).toBe(true);
  });
});

describe("the `linear` repricing strategy", () => {
  // protects [Sent again, priced again, stuck] src/domain/fees/repricing.ts
  it("adds the same share of the first offered fees each time", () => {
    const first = dynamic(100n, 8n);
    const strategy = linearRepricing(50);
    const second = reprice(strategy, view(first), PLENTY);
    expect(second).toMatchObject({ verdict: "reprice", fees: dynamic(150n, 12n) });
    expect(reprice(strategy, view(dynamic(150n, 12n), { first, attempts: 2 }), PLENTY)).toMatchObject({
      fees: dynamic(200n, 16n),
    });
  });

  // protects [Sent again, priced again, stuck] src/domain/fees/repricing.ts
  it("raises the fees at least to the replacement minimum", () => {
    const verdict = reprice(linearRepricing(1), view(dynamic(100n, 10n)), PLENTY);
    expect(verdict).toMatchObject({ fees: dynamic(110n, 11n) });
  });

  it("is selected by the setting `linear`", () => {
    expect(REPRICING_STRATEGIES.linear.propose(view(dynamic(100n, 4n)))).toEqual(dynamic(125n, 5n));
    expect(REPRICING_STRATEGIES.on).toBe(marketRepricing);
  });
});

describe("the fee ceiling of a reprice", () => {
  it("limits a price taken from the market", () => {
    const at = (baseFee: bigint) =>
      reprice(marketRepricing, view(dynamic(20n, 1n), { market: market(baseFee, [2n]) }), 100n * GWEI);
    expect(at(99n)).toEqual({ verdict: "reprice", fees: dynamic(100n, 2n), reached: true });
    expect(at(90n)).toEqual({ verdict: "reprice", fees: dynamic(100n, 2n), reached: false });
  });

  it("ends repricing if even the minimum replacement is above it", () => {
    const verdict = reprice(marketRepricing, view(dynamic(95n, 1n), { market: market(200n) }), 100n * GWEI);
    expect(verdict).toEqual({ verdict: "ceiling", needed: 104_500_000_000n });
  });

  it("limits every strategy", () => {
    const greedy = { name: "greedy", propose: () => dynamic(10n ** 9n, 10n ** 9n) };
    const verdict = reprice(greedy, view(dynamic(20n, 1n)), 100n * GWEI);
    expect(verdict).toMatchObject({ fees: dynamic(100n, 100n) });
  });
});

describe("fee offers", () => {
  const attempt = (ordinal: number, fees: Fees): Attempt => ({
    ordinal,
    kind: "initial",
    txHash: `0x${ordinal}`,
    gas: 1n,
    fees,
  });

  it("combine to the highest value of each field, or to null if there are no offers", () => {
    expect(highestOffer([attempt(1, dynamic(9n, 1n)), attempt(2, dynamic(8n, 3n))])).toEqual(dynamic(9n, 3n));
    expect(highestOffer([])).toBeNull();
  });

  it("cover another fee offer if they are at least as high in both fields", () => {
    expect(covers(dynamic(9n, 3n), dynamic(9n, 3n))).toBe(true);
    expect(covers(dynamic(10n, 2n), dynamic(9n, 3n))).toBe(false);
    expect(covers(dynamic(8n, 3n), dynamic(9n, 3n))).toBe(false);
  });
});

describe("a proposal of any repricing strategy", () => {
  const wei = fc.bigInt({ min: 0n, max: 10n ** 15n });
  const fees: fc.Arbitrary<Fees> = fc.oneof(
    fc.record({ cap: wei, tip: wei }).map(({ cap, tip }): Fees => {
      const maxFeePerGas = cap + tip;
      return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas: tip };
    }),
    wei.map((gasPrice): Fees => ({ type: "legacy", gasPrice })),
  );

  // protects [Sent again, priced again, stuck] src/domain/fees/repricing.ts
  it("becomes a replacement with at least a tenth more in each fee field", () => {
    fc.assert(
      fc.property(fees, fees, wei, fc.boolean(), (standing, proposed, ceiling, refused) => {
        const strategy = { name: "any", propose: () => proposed };
        const verdict = reprice(strategy, view(standing, { refused }), ceiling);
        if (verdict.verdict !== "reprice") return;
        expect(verdict.fees.type).toBe(standing.type);
        expect(feeCap(verdict.fees)).toBeLessThanOrEqual(ceiling);
        const [now, before] = [tipOf(verdict.fees), tipOf(standing)];
        expect(now * 10n).toBeGreaterThanOrEqual(before * 11n);
        expect(now).toBeGreaterThan(before);
        expect(now).toBeLessThanOrEqual(feeCap(verdict.fees));
        expect(feeCap(verdict.fees) * 10n).toBeGreaterThanOrEqual(feeCap(standing) * 11n);
      }),
    );
  });
});

function tipOf(fees: Fees): bigint {
  return fees.type === "eip1559" ? fees.maxPriorityFeePerGas : fees.gasPrice;
}

describe("a custom repricing strategy", () => {
  const failures: string[] = [];
  const guarded = (propose: () => unknown) => {
    failures.length = 0;
    const own = { name: "own", propose: propose as RepricingStrategy["propose"] };
    return guardedRepricing(own, (reason) => failures.push(reason));
  };
  const refused = view(dynamic(100n, 10n), { refused: true });
  const asked = marketRepricing.propose(refused);

  it("is used under its own name", () => {
    const strategy = guarded(() => dynamic(500n, 50n));
    expect(strategy.name).toBe("own");
    expect(strategy.propose(refused)).toEqual(dynamic(500n, 50n));
    expect(guarded(() => null).propose(refused)).toBeNull();
    expect(failures).toEqual([]);
  });

  it("may return fees without a type: the current type is kept", () => {
    const { type: _, ...fees } = dynamic(500n, 50n);
    expect(guarded(() => fees).propose(refused)).toEqual(dynamic(500n, 50n));
    expect(guarded(() => ({ gasPrice: 5n })).propose(view(legacy(1n)))).toEqual({ type: "legacy", gasPrice: 5n });
    expect(failures).toEqual([]);
  });

  it.each([
    ["returns a promise", async () => dynamic(500n, 50n)],
    ["returns numbers instead of bigints", () => ({ type: "eip1559", maxFeePerGas: 5, maxPriorityFeePerGas: 1 })],
    ["returns a negative price", () => ({ type: "legacy", gasPrice: -1n })],
    ["returns an unknown transaction type", () => ({ type: "eip4844", gasPrice: 1n })],
    ["returns nothing", () => undefined],
  ])("does not stop the lane if the strategy %s", (_, propose) => {
    expect(guarded(propose).propose(refused)).toEqual(asked);
    expect(failures).toEqual(["the strategy proposed neither null nor fees in wei (bigint)"]);
  });

  it("is reported with its error message if it throws", () => {
    const strategy = guarded(() => {
      throw new Error("no table for this chain");
    });
    expect(strategy.propose(refused)).toEqual(asked);
    expect(failures).toEqual(["no table for this chain"]);
  });

  it("can follow an oracle's price, with the current fee type", () => {
    const advised = {
      ...market(40n, [1n]),
      offer: { maxFeePerGas: 90n * GWEI, maxPriorityFeePerGas: 9n * GWEI, isFixed: false },
    };
    const standing = dynamic(20n, 8n);
    expect(marketRepricing.propose(view(standing, { market: advised }))).toEqual(dynamic(90n, 9n));
  });
});
