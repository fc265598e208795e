import { describe, expect, it } from "vitest";
import { type FeeMarket, feeCap } from "../../../src/domain/transaction/fees.ts";
import type { Block } from "../../../src/ports/chain.ts";
import { type ChainBench, type ChainBenchOptions, createChainBench } from "../../support/chain-bench.ts";

const GWEI = 1_000_000_000n;
const FORTUNE = 1_000_000n * GWEI;
/** The fee ceiling that docs/configuration.md gives for chain 31337. */
const MOST = 1_000n * GWEI;
const TRANSFER = { gas: 21_000n, value: 1n };

/**
 * Mines some blocks at one base fee. From then on, the endpoint reports absurd fees, except those given in `market`.
 */
async function offered(market: Partial<FeeMarket>, options: ChainBenchOptions = {}): Promise<ChainBench> {
  const bench = createChainBench(options);
  bench.simulated.mine(90);
  await bench.context.follower.advance();
  const lie = { baseFees: Array.from({ length: 101 }, () => FORTUNE), priorityFees: [FORTUNE], gasPrice: FORTUNE };
  bench.chain.feeMarket = async () => ({ ...lie, ...market });
  return bench;
}

function usualBaseFee({ simulated }: ChainBench): bigint {
  const seen = simulated.blocks.head.number;
  return simulated.blocks.byNumber(Math.max(0, seen - 40))?.baseFeePerGas ?? 0n;
}

async function capOf({ context }: ChainBench): Promise<bigint> {
  return feeCap((await context.price({}, TRANSFER)).fees);
}

describe("a transaction's first fee", () => {
  it.each([
    ["the whole history", {}],
    ["the last base fee, without a fee history", { baseFees: [FORTUNE], priorityFees: [] }],
    ["the tips", { baseFees: [GWEI] }],
    // protects [Sent again, priced again, stuck] src/application/chain/chain-context.ts
  ])("is bounded by the base fees of earlier blocks if one endpoint lies about %s", async (_, market) => {
    const bench = await offered(market);
    const most = 10n * usualBaseFee(bench) + 2n * GWEI;
    for (const wishes of [{}, { type: "legacy" }] as const) {
      const { fees, reached } = await bench.context.price(wishes, TRANSFER);
      expect(feeCap(fees)).toBeLessThanOrEqual(most);
      expect(reached).toBeNull();
    }
  });

  it("rises little after a single block with a false base fee", async () => {
    const bench = await offered({ baseFees: [20n * GWEI], priorityFees: [GWEI] });
    const { follower } = bench.context;
    bench.simulated.setBaseFee(FORTUNE);
    bench.simulated.mine();
    await follower.advance();
    expect(follower.head?.baseFeePerGas).toBe(FORTUNE);
    expect(await capOf(bench)).toBeLessThanOrEqual(10n * usualBaseFee(bench) + 2n * GWEI);
    for (let blocks = 0; blocks < 100; blocks++) {
      bench.simulated.setBaseFee(20n * GWEI);
      bench.simulated.mine();
    }
    await follower.advance();
    expect(follower.seenBaseFees).toHaveLength(100);
    expect(await capOf(bench)).toBe(41n * GWEI);
  });

  // protects [Sent again, priced again, stuck] src/application/chain/head-follower.ts, src/adapters/evm/reads/agree-on-market.ts
  it("ignores the base fee of a header that does not match its block hash", async () => {
    const bench = createChainBench();
    const { follower } = bench.context;
    const head = bench.chain.head.bind(bench.chain);
    const show = (change: Partial<Block>) => {
      bench.chain.head = async (tag) => {
        const block = await head(tag);
        return block && { ...block, ...change };
      };
    };
    const advance = async () => {
      bench.simulated.mine();
      await follower.advance();
    };
    show({ headerHolds: true, baseFeePerGas: 20n * GWEI });
    await advance();
    show({ headerHolds: false, baseFeePerGas: 7n });
    for (let blocks = 0; blocks < 5; blocks++) await advance();
    expect(follower.seenBaseFees.at(-1)).toBe(20n * GWEI);
    expect(follower.baseFee).toBe(20n * GWEI);
    show({ headerHolds: true, baseFeePerGas: 21n * GWEI });
    await advance();
    expect(follower.seenBaseFees.slice(-2)).toEqual([20n * GWEI, 21n * GWEI]);
  });

  it("follows the reported fee market if two endpoints agree on that market", async () => {
    const market = { baseFees: [100n * GWEI], priorityFees: [GWEI] };
    const bench = await offered(market);
    expect(await capOf(bench)).toBeLessThan(100n * GWEI);
    const agreed = await offered({ ...market, agreed: true });
    expect(await capOf(agreed)).toBe(201n * GWEI);
  });

  it.each([
    ["have a base fee of zero", 0n, {}],
    ["have no base fee", null, { baseFees: [] }],
    ["have the same false base fee from the first one on", FORTUNE, {}],
    // protects [Sent again, priced again, stuck] src/domain/fees/ceilings.ts, src/application/chain/chain-context.ts
  ])("is limited to the configured ceiling if blocks %s", async (_, baseFee, market: Partial<FeeMarket>) => {
    const bench = await offered(market, { chain: { baseFee } });
    for (const wishes of [{}, { type: "legacy" }] as const) {
      const { fees, reached } = await bench.context.price(wishes, TRANSFER);
      expect(feeCap(fees)).toBe(MOST);
      expect(reached).toEqual({ most: MOST, variable: "FENCEPOST_MAX_FEE_GWEI" });
    }
  });

  it("is bounded, for a high gas limit, by the ceiling on gas times fee", async () => {
    const bench = await offered({ baseFees: [] }, { chain: { baseFee: null } });
    const { fees, reached } = await bench.context.price({}, { gas: 30_000_000n, value: 1n });
    expect(feeCap(fees) * 30_000_000n).toBeLessThanOrEqual(10n ** 18n);
    expect(feeCap(fees)).toBe(33_333_333_333n);
    expect(reached?.variable).toBe("FENCEPOST_MAX_GAS_COST_WEI");
  });

  it("is the fee that the caller gave, up to the configured ceiling", async () => {
    const bench = await offered({});
    const wishes = { maxFeePerGas: MOST, maxPriorityFeePerGas: GWEI };
    expect((await bench.context.price(wishes, TRANSFER)).fees).toMatchObject(wishes);
    const dearer = await bench.context.price({ maxFeePerGas: MOST + 1n, maxPriorityFeePerGas: MOST + 1n }, TRANSFER);
    expect(dearer.fees).toMatchObject({ maxFeePerGas: MOST, maxPriorityFeePerGas: MOST });
    expect(dearer.reached?.variable).toBe("FENCEPOST_MAX_FEE_GWEI");
  });
});
