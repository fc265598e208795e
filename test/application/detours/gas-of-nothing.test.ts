import { describe, expect, it } from "vitest";
import { gasOfNothing } from "../../../src/application/detours/another-attempt.ts";
import { type ChainBench, createChainBench } from "../../support/chain-bench.ts";
import { SIGNER } from "../../support/world.ts";

/** A chain on which a plain transfer may need more than 21,000 gas, so Fencepost must use the gas estimate. */
const ARBITRUM = 42_161;
const LIE = 14_191_170n;

async function ready(endpoints: 1 | 2): Promise<ChainBench> {
  const bench = createChainBench({ endpoints, chain: { chainId: ARBITRUM }, settings: { maxGasCostWei: 10n ** 15n } });
  bench.simulated.mine(3);
  await bench.context.follower.advance();
  return bench;
}

describe("the gas limit of a cancel or placeholder transaction", () => {
  it("follows the chain's estimate", async () => {
    const bench = await ready(1);
    bench.faults.lieAboutGas(() => 45_000n);
    expect(await gasOfNothing(bench.context, SIGNER)).toBe(54_000n);
  });

  // protects [Holes] src/application/detours/another-attempt.ts
  it("ignores a higher estimate of only one endpoint", async () => {
    const bench = await ready(2);
    bench.faults.lieAboutGas(() => LIE);
    expect(await gasOfNothing(bench.context, SIGNER)).toBe(21_000n);
  });

  it("follows a high estimate if two endpoints agree", async () => {
    const bench = await ready(2);
    for (const endpoint of [bench.faults, bench.elsewhere]) endpoint.lieAboutGas(() => LIE);
    expect(await gasOfNothing(bench.context, SIGNER)).toBeGreaterThan(LIE);
  });

  // protects [Holes] src/application/detours/another-attempt.ts
  it("ignores a higher estimate while the fee market is unavailable", async () => {
    const bench = await ready(2);
    bench.faults.lieAboutGas(() => LIE);
    bench.faults.inject({ kind: "unavailable" }, { method: "eth_feeHistory" });
    expect(await gasOfNothing(bench.context, SIGNER)).toBe(21_000n);
  });
});
