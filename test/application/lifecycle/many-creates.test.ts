import { describe, expect, it, onTestFinished } from "vitest";
import { countCalls, LANES, signersOf, startWithLanes } from "../../support/many-lanes.ts";
import { transfer } from "../../support/world.ts";

/**
 * Number of lanes that get creates before the measurement starts. The node recognises a steady rate of creates only
 * after a few tenths of a second.
 */
const FIRST = LANES / 2;

describe("creates on a thousand lanes, one per millisecond,", () => {
  // protects [Many lanes] src/application/writer/committer.ts
  it("share database reads and commits", async () => {
    const { world, entry } = await startWithLanes(LANES);
    onTestFinished(() => world.close());
    const { node, store, events } = entry;
    const answers: Promise<unknown>[] = [];
    let calls = countCalls(store, world.clock);
    for (const [n, signer] of signersOf(LANES).entries()) {
      if (n === FIRST) calls = countCalls(store, world.clock);
      const payload = { to: signer, value: "1", gas: 60_000 };
      answers.push(node.api.create(transfer({ signer, payload })));
      await world.clock.advance(1);
    }
    await world.settle(Promise.all(answers));
    const { byName } = calls;
    const [reads, commits] = [byName.get("findByRequestIds"), byName.get("commit")];
    await world.allSettled(LANES);
    expect(events.filter(({ type }) => type === "create.answered").length).toBe(LANES);
    expect(reads).toBeLessThanOrEqual((LANES - FIRST) / 9);
    expect(commits).toBeLessThanOrEqual((LANES - FIRST) / 9);
  });
});
