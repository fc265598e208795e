import { systemClock } from "../../src/adapters/system/clock.ts";
import type { Clock } from "../../src/ports/clock.ts";

/** A real clock whose waits are cut short, for pauses and deadlines around real sockets. */
export function createHastyClock(mostMs = 150): Clock {
  const after: Clock["after"] = (ms, callback) => systemClock.after(Math.min(ms, mostMs), callback);
  const sleep: Clock["sleep"] = (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const cancel = after(ms, () => resolve());
      signal?.addEventListener("abort", () => {
        cancel();
        reject(signal.reason);
      });
    });
  return { ...systemClock, after, sleep };
}
