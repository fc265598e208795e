import { describe, expect, it } from "vitest";
import { type ReadinessParts, readiness } from "../../../src/application/queries/readiness.ts";
import { createChainBench } from "../../support/chain-bench.ts";

/**
 * A node that serves chains 1 and 10. It has read blocks of the chains listed in `up`; a chain not listed is
 * unreachable.
 */
async function parts(up: readonly number[], overrides: Partial<ReadinessParts> = {}): Promise<ReadinessParts> {
  const benches = [1, 10].map((chainId) => createChainBench({ chain: { chainId } }));
  for (const { chain, context } of benches) {
    if (up.includes(chain.chainId)) {
      await context.follower.advance();
      context.noteHead();
    } else context.reachable = false;
  }
  const contexts = benches.map(({ context }) => context);
  const store = { ping: () => Promise.resolve() };
  return {
    store,
    lease: { mayAct: () => true },
    chains: new Map(contexts.map((context) => [context.chain.chainId, context])),
    reception: { draining: false },
    settlingIn: { isOver: true },
    lanesOf: () => [],
    ...overrides,
  };
}

describe("readiness of a node with several chains", () => {
  // protects [Chains that differ] src/application/queries/readiness.ts
  it("is true while at least one chain is served", async () => {
    expect(await readiness(await parts([1, 10]))).toMatchObject({ ready: true });
    expect(await readiness(await parts([10]))).toEqual({
      ready: true,
      database: true,
      chains: [
        { chainId: 1, reachable: false, head: null, headSince: null, signersAway: 0, troubles: ["CHAIN_UNREACHABLE"] },
        { chainId: 10, reachable: true, head: 0, headSince: expect.any(String), signersAway: 0, troubles: [] },
      ],
      draining: false,
    });
    expect(await readiness(await parts([]))).toMatchObject({ ready: false });
  });

  // protects [Chains that differ] src/application/queries/readiness.ts
  it("covers a single chain if the request names one", async () => {
    const one = await parts([10]);
    expect(await readiness(one, 10)).toMatchObject({ ready: true, chains: [{ chainId: 10, reachable: true }] });
    const missing = await readiness(one, 1);
    expect(missing).toMatchObject({ ready: false, chains: [{ chainId: 1, reachable: false }] });
    expect(missing.chains).toHaveLength(1);
  });

  it.each<[string, Partial<ReadinessParts>]>([
    ["the database is unavailable", { store: { ping: () => Promise.reject(new Error("away")) } }],
    ["its lease has expired", { lease: { mayAct: () => false } }],
    ["it is shutting down", { reception: { draining: true } }],
  ])("is false for every chain if %s", async (_, overrides) => {
    const all = await parts([1, 10], overrides);
    expect(await readiness(all)).toMatchObject({ ready: false });
    expect(await readiness(all, 10)).toMatchObject({ ready: false });
  });

  it("is refused with UNKNOWN_CHAIN for a chain that is not configured", async () => {
    await expect(readiness(await parts([1, 10]), 5)).rejects.toMatchObject({ code: "UNKNOWN_CHAIN", status: 422 });
  });
});
