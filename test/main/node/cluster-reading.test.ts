import { describe, expect, it } from "vitest";
import { clusterReading } from "../../../src/main/node/cluster-reading.ts";
import type { Census } from "../../../src/ports/query-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

const CENSUS: Census = {
  states: { CREATED: 1, ALLOCATED: 2, TRACKING: 3, STUCK: 4, CONFIRMED: 1_000_000, FAILED_FINAL: 5 },
  watched: { CONFIRMED: 7, FAILED_FINAL: 0 },
  oldestPendingAgeMs: 2_500,
  unownedLanes: 1,
  suspendedLanes: 2,
};

describe("metrics values about the whole cluster", () => {
  // protects [Signals] src/main/node/cluster-reading.ts
  it("are cached for five seconds", async () => {
    const clock = createManualClock();
    let asked = 0;
    const read = clusterReading({ census: async () => ({ ...CENSUS, unownedLanes: ++asked }) }, clock);
    const scrape = () => Promise.all([read(), read(), read()]);
    const [first] = await scrape();
    expect(first).toEqual({
      states: CENSUS.states,
      pendingDepth: 6,
      oldestPendingAgeSeconds: 2.5,
      unownedLanes: 1,
      suspendedLanes: 2,
    });
    await clock.advance(4_999);
    await scrape();
    expect(asked).toBe(1);
    await clock.advance(1);
    await scrape();
    expect(asked).toBe(2);
  });

  it("are read again at the next scrape if the database did not answer", async () => {
    const clock = createManualClock();
    let isUp = false;
    const read = clusterReading(
      { census: () => (isUp ? Promise.resolve(CENSUS) : Promise.reject(new Error("down"))) },
      clock,
    );
    await expect(read()).rejects.toThrow("down");
    isUp = true;
    await expect(read()).resolves.toMatchObject({ pendingDepth: 6 });
  });
});
