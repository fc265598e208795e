import { describe, expect, it, onTestFinished } from "vitest";
import { countCalls, LANES, signersOf, startWithLanes } from "../support/many-lanes.ts";
import { transfer } from "../support/world.ts";

describe("a thousand lanes with one create each, one a millisecond", () => {
  it("share reads and commits: no more than one of each for ten", async () => {
    const { world, entry } = await startWithLanes(LANES);
    onTestFinished(() => world.close());
    const { node, store, events } = entry;
    const calls = countCalls(store, world.clock);
    const answers: Promise<unknown>[] = [];
    for (const signer of signersOf(LANES)) {
      const payload = { to: signer, value: "1", gas: 60_000 };
      answers.push(node.api.create(transfer({ signer, payload })));
      await world.clock.advance(1);
    }
    await world.settle(Promise.all(answers));
    await world.allSettled(LANES);
    expect(events.filter(({ type }) => type === "create.answered").length).toBe(LANES);
    expect(calls.byName.get("findByRequestIds")).toBeLessThanOrEqual(LANES / 9);
    expect(calls.byName.get("commit")).toBeLessThanOrEqual(LANES / 9);
  });
});
