import type { Clock } from "../../src/ports/clock.ts";

/** A clock controlled by a test. No timer fires until the test advances it. */
export interface ManualClock extends Clock {
  /**
   * Advances by `ms` and fires the due timers in order of due time; timers due at the same time fire in the order in
   * which they were set. Promises settle between any two timers.
   */
  advance(ms: number): Promise<void>;
  /**
   * Jumps from timer to timer until no timer is left. Throws after `limitMs`, because a loop that sets a new timer each
   * time never ends.
   */
  runUntilIdle(limitMs?: number): Promise<void>;
  /** Moves only the wall clock, forwards or back, as an administrator might. */
  stepWallClock(ms: number): void;
  readonly armedTimers: number;
  /** Due time of the earliest timer, on the monotonic clock; null if none is armed. */
  readonly nextDueMs: number | null;
}

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly callback: () => void;
}

const EPOCH = Date.UTC(2026, 0, 1);
const IDLE_LIMIT_MS = 24 * 60 * 60 * 1000;

export function createManualClock(startedAt: Date = new Date(EPOCH)): ManualClock {
  const timers = new Set<Timer>();
  let monotonicMs = 0;
  let wallOffsetMs = startedAt.getTime();
  let armed = 0;

  const after = (ms: number, callback: () => void) => {
    const timer = { dueMs: monotonicMs + (ms > 0 ? ms : 0), order: armed++, callback };
    timers.add(timer);
    return () => void timers.delete(timer);
  };

  const runUntil = async (targetMs: number) => {
    await settle();
    for (let timer = earliest(timers); timer !== null && timer.dueMs <= targetMs; timer = earliest(timers)) {
      monotonicMs = Math.max(monotonicMs, timer.dueMs);
      timers.delete(timer);
      timer.callback();
      await settle();
    }
  };

  return {
    monotonicMs: () => monotonicMs,
    now: () => new Date(wallOffsetMs + monotonicMs),
    after,
    soon: (callback) => void after(0, callback),
    sleep: (ms, signal) => sleepOn(after, ms, signal),
    async advance(ms) {
      const targetMs = monotonicMs + ms;
      await runUntil(targetMs);
      monotonicMs = targetMs;
    },
    async runUntilIdle(limitMs = IDLE_LIMIT_MS) {
      const targetMs = monotonicMs + limitMs;
      await runUntil(targetMs);
      if (timers.size > 0) throw new Error(`${timers.size} timers are still armed after ${limitMs} ms of manual time`);
    },
    stepWallClock: (ms) => {
      wallOffsetMs += ms;
    },
    get armedTimers() {
      return timers.size;
    },
    get nextDueMs() {
      return earliest(timers)?.dueMs ?? null;
    },
  };
}

function earliest(timers: ReadonlySet<Timer>): Timer | null {
  let first: Timer | null = null;
  for (const timer of timers) {
    if (first === null || timer.dueMs < first.dueMs || (timer.dueMs === first.dueMs && timer.order < first.order)) {
      first = timer;
    }
  }
  return first;
}

/** A macrotask runs only when the microtask queue is empty, so every promise chain without I/O has settled by then. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function sleepOn(after: Clock["after"], ms: number, signal?: AbortSignal): Promise<void> {
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
