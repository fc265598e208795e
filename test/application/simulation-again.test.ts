import { expect, it } from "vitest";
import { play } from "../support/simulation/play.ts";

/** Seeds of simulations that once failed, and why. */
// protects [The feed] src/application/queries/reads.ts, src/adapters/postgres/stores/queries.ts
const REGRESSIONS = [[2_000_948, "an epoch of the feed began between the two reads of a page"]] as const;

it.each(REGRESSIONS)("simulation with seed %i (%s): every transaction settles", async (seed) => {
  await play({ seed });
});

it("simulation: running one seed twice gives identical events and RPC traffic", async () => {
  const simulate = async (): Promise<string> => {
    const { world } = await play({ seed: 11 });
    const story = { events: world.nodes.map(({ events }) => events), wire: world.chain.witness };
    return JSON.stringify(story, (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value));
  };
  const first = await simulate();
  expect(first.length).toBeGreaterThan(10_000);
  expect(await simulate()).toBe(first);
});
