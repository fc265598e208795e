import { describe, expect, it } from "vitest";
import { GasLimits } from "../../../src/application/chain/chain-context.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

const HOUR_MS = 3_600_000;
const CAP = 16_777_216n;

function limits(chainId: number, configured: bigint | null = null, block: bigint | null = 30_000_000n) {
  const clock = createManualClock();
  return { clock, limits: new GasLimits({ chainId, configured, clock, blockGasLimit: () => block }) };
}

describe("the cap of one transaction", () => {
  it("is what the settings say, before anything else", () => {
    const { limits: on } = limits(1, 25_000_000n);
    on.learn(20_000_000n, 26_000_000n);
    expect(on.cap).toBe(25_000_000n);
    expect(on.most).toEqual({ gas: 25_000_000n, of: "transaction" });
  });

  it("is what is known of the chain by its id, whatever an endpoint names when it refuses", () => {
    const { limits: on } = limits(1);
    on.learn(20_000_000n, 26_000_000n);
    on.learn(1_000_000n, 16_000_000n);
    expect(on.cap).toBe(CAP);
  });

  it("is learned on every other chain, and never assumed", () => {
    const { limits: on } = limits(31_337);
    expect(on.cap).toBeNull();
    expect(on.most).toEqual({ gas: 30_000_000n, of: "block" });
    on.learn(CAP, 17_029_404n);
    expect(on.most).toEqual({ gas: CAP, of: "transaction" });
  });

  it("is forgotten after an hour: the chain may have raised it", async () => {
    const { limits: on, clock } = limits(31_337);
    on.learn(CAP, 17_029_404n);
    await clock.advance(HOUR_MS - 1);
    expect(on.cap).toBe(CAP);
    await clock.advance(1);
    expect(on.cap).toBeNull();
  });

  it.each([
    ["so low that hardly anything would pass", 999_999n, 17_000_000n],
    ["that the refused payload did not exceed", CAP, CAP],
    // protects [Holes] src/adapters/evm/submit/submit-transactions.ts, src/application/chain/chain-context.ts
  ])("is not learned from a refusal that names one %s", (_, cap, gas) => {
    const { limits: on } = limits(31_337);
    on.learn(cap, gas);
    expect(on.cap).toBeNull();
  });

  it("is unknown together with the block's before anything was seen", () => {
    expect(limits(31_337, null, null).limits.most).toBeNull();
  });
});
