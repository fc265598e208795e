import { describe, expect, it } from "vitest";
import { DatabaseClock } from "../../../src/application/database-clock.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A machine, and a database whose clock is so far ahead of it. */
function clocks(aheadMs: number) {
  const machine = createManualClock();
  const clock = new DatabaseClock(machine);
  const databaseMs = { ahead: aheadMs };
  const hear = () => clock.observe(new Date(machine.now().getTime() + databaseMs.ahead));
  const isAheadByMs = () => clock.now().getTime() - machine.now().getTime();
  return { machine, databaseMs, hear, isAheadByMs };
}

describe("the time of day", () => {
  it("is the machine's until the database's is heard, and the database's from then on", async () => {
    const { machine, hear, isAheadByMs } = clocks(HOUR_MS);
    expect(isAheadByMs()).toBe(0);
    hear();
    expect(isAheadByMs()).toBe(HOUR_MS);
    await machine.advance(MINUTE_MS);
    expect(isAheadByMs()).toBe(HOUR_MS);
  });

  // protects [The fence] src/application/database-clock.ts
  it("goes back with the database's at once, so that nothing new seems old", async () => {
    const { machine, databaseMs, hear, isAheadByMs } = clocks(0);
    hear();
    databaseMs.ahead = -HOUR_MS;
    await machine.advance(MINUTE_MS);
    hear();
    expect(isAheadByMs()).toBe(-HOUR_MS);
  });

  // protects [The fence] src/application/database-clock.ts
  it("follows it forward slowly, so that nothing seems an hour old because its clock was set", async () => {
    const { machine, databaseMs, hear, isAheadByMs } = clocks(0);
    hear();
    databaseMs.ahead = HOUR_MS;
    await machine.advance(MINUTE_MS);
    hear();
    expect(isAheadByMs()).toBe(MINUTE_MS / 10);
    for (let minute = 0; minute < 600; minute++) {
      await machine.advance(MINUTE_MS);
      hear();
    }
    expect(isAheadByMs()).toBe(HOUR_MS);
  });
});
