import { describe, expect, it } from "vitest";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { createChainBench } from "../../support/chain-bench.ts";

function marketBench() {
  const bench = createChainBench({ settings: { pollIntervalMs: 1_000 } });
  const { chain } = bench;
  const feeMarket = chain.feeMarket.bind(chain);
  const asked: { times: number; fails: boolean } = { times: 0, fails: false };
  chain.feeMarket = async () => {
    asked.times++;
    if (asked.fails) throw new ChainUnavailable("no answer");
    return feeMarket();
  };
  return { ...bench, asked };
}

describe("the fee market of a chain", () => {
  it("is read once per poll, for any number of callers", async () => {
    const { context, clock, asked } = marketBench();
    await Promise.all(Array.from({ length: 20 }, () => context.feeMarket()));
    await clock.advance(999);
    await context.feeMarket();
    expect(asked.times).toBe(1);
    await clock.advance(1);
    await context.feeMarket();
    expect(asked.times).toBe(2);
  });

  it("is read again after a new block", async () => {
    const { context, asked } = marketBench();
    await context.feeMarket();
    context.forget();
    await context.feeMarket();
    expect(asked.times).toBe(2);
  });

  it("is read again after a failed read", async () => {
    const { context, asked } = marketBench();
    asked.fails = true;
    await Promise.all([1, 2].map(() => expect(context.feeMarket()).rejects.toThrow(ChainUnavailable)));
    asked.fails = false;
    expect((await context.feeMarket()).gasPrice).toBeGreaterThan(0n);
    expect(asked.times).toBe(2);
  });
});
