import { describe, expect, it } from "vitest";
import { DatabaseClock } from "../../../src/application/database-clock.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Two clocks: that of a machine, and that of a database, which is `aheadMs` ahead of the machine's. */
function clocks(aheadMs: number) {
  const machine = createManualClock();
  const clock = new DatabaseClock(machine);
  const databaseMs = { ahead: aheadMs };
  const observe = () => clock.observe(new Date(machine.now().getTime() + databaseMs.ahead));
  const isAheadByMs = () => clock.now().getTime() - machine.now().getTime();
  return { machine, databaseMs, observe, isAheadByMs };
}

describe("the node's time of day", () => {
  it("is the database's time after the first read", async () => {
    const { machine, observe, isAheadByMs } = clocks(HOUR_MS);
    expect(isAheadByMs()).toBe(0);
    observe();
    expect(isAheadByMs()).toBe(HOUR_MS);
    await machine.advance(MINUTE_MS);
    expect(isAheadByMs()).toBe(HOUR_MS);
  });

  // protects [The fence] src/application/database-clock.ts
  it("follows the database's clock backward at once, so that nothing new appears old", async () => {
    const { machine, databaseMs, observe, isAheadByMs } = clocks(0);
    observe();
    databaseMs.ahead = -HOUR_MS;
    await machine.advance(MINUTE_MS);
    observe();
    expect(isAheadByMs()).toBe(-HOUR_MS);
  });

  // protects [The fence] src/application/database-clock.ts
  it("follows the database's clock forward only slowly", async () => {
    const { machine, databaseMs, observe, isAheadByMs } = clocks(0);
    observe();
    databaseMs.ahead = HOUR_MS;
    await machine.advance(MINUTE_MS);
    observe();
    expect(isAheadByMs()).toBe(MINUTE_MS / 10);
    for (let minute = 0; minute < 600; minute++) {
      await machine.advance(MINUTE_MS);
      observe();
    }
    expect(isAheadByMs()).toBe(HOUR_MS);
  });
});
