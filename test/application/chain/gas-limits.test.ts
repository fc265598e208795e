import { describe, expect, it } from "vitest";
import { GasLimits } from "../../../src/application/chain/chain-context.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

const HOUR_MS = 3_600_000;
const CAP = 16_777_216n;

function limits(chainId: number, configured: bigint | null = null, block: bigint | null = 30_000_000n) {
  const clock = createManualClock();
  return { clock, limits: new GasLimits({ chainId, configured, clock, blockGasLimit: () => block }) };
}

describe("the gas cap of one transaction", () => {
  it("is the configured value, if there is one", () => {
    const { limits: on } = limits(1, 25_000_000n);
    on.learn(20_000_000n, 26_000_000n);
    expect(on.cap).toBe(25_000_000n);
    expect(on.most).toEqual({ gas: 25_000_000n, of: "transaction" });
  });

  it("is the known value for the chain id, whatever cap an endpoint names in a refusal", () => {
    const { limits: on } = limits(1);
    on.learn(20_000_000n, 26_000_000n);
    on.learn(1_000_000n, 16_000_000n);
    expect(on.cap).toBe(CAP);
  });

  it("is learned from refusals if the chain has no known cap", () => {
    const { limits: on } = limits(31_337);
    expect(on.cap).toBeNull();
    expect(on.most).toEqual({ gas: 30_000_000n, of: "block" });
    on.learn(CAP, 17_029_404n);
    expect(on.most).toEqual({ gas: CAP, of: "transaction" });
  });

  it("is forgotten an hour after it was learned", async () => {
    const { limits: on, clock } = limits(31_337);
    on.learn(CAP, 17_029_404n);
    await clock.advance(HOUR_MS - 1);
    expect(on.cap).toBe(CAP);
    await clock.advance(1);
    expect(on.cap).toBeNull();
  });

  it.each([
    ["so low that almost no transaction would fit", 999_999n, 17_000_000n],
    ["that the refused payload did not exceed", CAP, CAP],
    // protects [Holes] src/adapters/evm/submit/submit-transactions.ts, src/application/chain/chain-context.ts
  ])("is not learned from a refusal that names a cap %s", (_, cap, gas) => {
    const { limits: on } = limits(31_337);
    on.learn(cap, gas);
    expect(on.cap).toBeNull();
  });

  it("is unknown if neither a cap nor the chain's block gas limit is known", () => {
    expect(limits(31_337, null, null).limits.most).toBeNull();
  });
});
