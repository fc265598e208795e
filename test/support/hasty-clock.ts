import { systemClock } from "../../src/adapters/system/clock.ts";
import type { Clock } from "../../src/ports/clock.ts";

/** Real time, but nobody waits for long: for pauses and deadlines around real sockets. */
export function createHastyClock(mostMs = 150): Clock {
  return {
    ...systemClock,
    sleep: (ms, signal) => systemClock.sleep(Math.min(ms, mostMs), signal),
    after: (ms, callback) => systemClock.after(Math.min(ms, mostMs), callback),
  };
}
