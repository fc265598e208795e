import { describe, expect, it } from "vitest";
import { type FeeMarket, feeCap } from "../../../src/domain/fees.ts";
import { type ChainBench, createChainBench } from "../../support/chain-bench.ts";

const GWEI = 1_000_000_000n;
const FORTUNE = 1_000_000n * GWEI;

/** After so many blocks at one base fee, an endpoint that answers the question for the market like this. */
async function offered(market: Partial<FeeMarket>, blocks = 90): Promise<ChainBench> {
  const bench = createChainBench();
  bench.simulated.mine(blocks);
  await bench.context.follower.advance();
  const lie = { baseFees: Array.from({ length: 101 }, () => FORTUNE), priorityFees: [FORTUNE], gasPrice: FORTUNE };
  bench.chain.feeMarket = async () => ({ ...lie, ...market });
  return bench;
}

function usualBaseFee({ simulated }: ChainBench): bigint {
  const seen = simulated.blocks.head.number;
  return simulated.blocks.byNumber(Math.max(0, seen - 40))?.baseFeePerGas ?? 0n;
}

describe("a first price", () => {
  it.each([
    ["the whole history", {}],
    ["the last base fee, with no history beside it", { baseFees: [FORTUNE], priorityFees: [] }],
    ["the tips", { baseFees: [GWEI] }],
  ])("is bounded by the blocks that were followed where one answer lies about %s", async (_, market) => {
    const bench = await offered(market);
    const most = 10n * usualBaseFee(bench) + 2n * GWEI;
    const fees = await bench.context.price({});
    expect(feeCap(fees)).toBeLessThanOrEqual(most);
    expect(feeCap(await bench.context.price({ type: "legacy" }))).toBeLessThanOrEqual(most);
  });

  it("follows the blocks: one lying head among them changes little, and a dearer chain is paid", async () => {
    const bench = await offered({ baseFees: [20n * GWEI], priorityFees: [GWEI] });
    const { follower } = bench.context;
    bench.simulated.setBaseFee(FORTUNE);
    bench.simulated.mine();
    await follower.advance();
    expect(follower.head?.baseFeePerGas).toBe(FORTUNE);
    expect(feeCap(await bench.context.price({}))).toBeLessThanOrEqual(10n * usualBaseFee(bench) + 2n * GWEI);
    for (let blocks = 0; blocks < 100; blocks++) {
      bench.simulated.setBaseFee(20n * GWEI);
      bench.simulated.mine();
    }
    await follower.advance();
    expect(follower.seenBaseFees).toHaveLength(100);
    expect(feeCap(await bench.context.price({}))).toBe(41n * GWEI);
  });

  it("is the caller's own where it brings one", async () => {
    const bench = await offered({});
    const wishes = { maxFeePerGas: 2n * FORTUNE, maxPriorityFeePerGas: GWEI };
    expect(await bench.context.price(wishes)).toMatchObject(wishes);
  });
});
