import { afterEach, describe, expect, it } from "vitest";
import { countCalls, LANES, startWithLanes } from "../../support/many-lanes.ts";
import type { World, WorldNode } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

async function start(lanes: number): Promise<WorldNode> {
  const started = await startWithLanes(lanes);
  world = started.world;
  return started.entry;
}

/** Number of clock reads of a node in one virtual minute, as a measure of its work. */
async function looksAtTheClock(lanes: number): Promise<number> {
  await start(lanes);
  const { clock } = world;
  const { monotonicMs } = clock;
  let looks = 0;
  Object.assign(clock, {
    monotonicMs: () => {
      looks++;
      return monotonicMs();
    },
  });
  await clock.advance(60_000);
  await world.close();
  return looks;
}

describe("a thousand idle lanes", () => {
  // protects [Many lanes] src/application/loops/chain-loop.ts, src/application/detours/reconcile.ts
  it("are compared with the chain together, in at most three requests a second", async () => {
    const { rpc, events } = await start(LANES);
    const calls = countCalls(rpc, world.clock);
    const before = events.length;
    await world.clock.advance(60_000);
    const reconciled = events.slice(before).filter(({ type }) => type === "lane.reconciled");
    // Each lane is compared with the chain once in five minutes.
    expect(reconciled.length).toBeGreaterThan(LANES / 6);
    expect(calls.instants.size / 60).toBeLessThanOrEqual(3);
    // A request whose answer is the same for all lanes is sent only once.
    expect(calls.byName.get("identity")).toBeLessThan(LANES / 20);
  });

  // protects [Many lanes] src/application/loops/chain-loop.ts, src/application/lane/owned-lane.ts
  it("need at most twice the work of ten idle lanes", async () => {
    const [few, many] = [await looksAtTheClock(10), await looksAtTheClock(LANES)];
    expect(many).toBeLessThanOrEqual(2 * few);
  });
});
