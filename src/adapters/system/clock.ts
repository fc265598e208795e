import type { Clock } from "../../ports/clock.ts";

/**
 * Longest delay of `setTimeout` in ms. It stores the delay in a signed 32-bit integer; with a longer delay it fires at
 * once.
 */
const LONGEST_TIMEOUT_MS = 2_147_483_647;

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  now: () => new Date(),
  sleep,
  after,
  soon: (callback) => void setImmediate(callback),
};

/**
 * Schedules a callback. Node.js's timers use the event loop's cached millisecond, so by `performance.now()` they may
 * fire a fraction of a millisecond early. Lease deadlines use `performance.now()`, so the callback runs only once that
 * clock has reached the due time.
 */
function after(ms: number, callback: () => void) {
  const dueMs = performance.now() + Math.max(0, ms);
  let timer: NodeJS.Timeout | undefined;
  const arm = () => {
    const remainingMs = Math.ceil(dueMs - performance.now());
    timer = setTimeout(fire, Math.min(remainingMs, LONGEST_TIMEOUT_MS));
  };
  const fire = () => {
    if (performance.now() < dueMs) arm();
    else callback();
  };
  arm();
  return () => clearTimeout(timer);
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = after(ms, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}
