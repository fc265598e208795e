/** Clock of the application. Only this port uses `Date.now` and timers, so that a test can control time. */
export interface Clock {
  /** Monotonic time in ms. Only this clock may decide that a node must stop working, as at the end of its lease. */
  monotonicMs(): number;
  /**
   * Wall clock of this machine, which may be hours off. Ages are computed with the database's clock instead; every row
   * has its time.
   */
  now(): Date;
  /** Resolves after `ms`; rejects with the signal's reason if it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms`. Calling the returned function cancels this. */
  after(ms: number, callback: () => void): () => void;
  /** Calls back in this turn of the event loop, after the I/O events that have already arrived. */
  soon(callback: () => void): void;
}

/** Returns the result of the work, or that of `late` if the work has no result after `ms`. */
export async function within<T>(
  clock: Clock,
  work: Promise<T>,
  { ms, late }: { ms: number; late: () => T },
): Promise<T> {
  const done = new AbortController();
  const timeout = clock.sleep(ms, done.signal).then(late);
  timeout.catch(() => undefined);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    done.abort();
  }
}

/**
 * `LOOK_AFTER`: number of items after which a long loop checks the clock. `TURN_MS`: time in ms after which it yields
 * to the event loop.
 */
const LOOK_AFTER = 16;
const TURN_MS = 5;

/** Processes many items and yields to the event loop in between, so that other work is not delayed. */
export async function fewAtATime<T>(
  clock: Pick<Clock, "soon" | "monotonicMs">,
  items: readonly T[],
  work: (item: T) => void,
): Promise<void> {
  let sinceMs = clock.monotonicMs();
  for (let from = 0; from < items.length; from += LOOK_AFTER) {
    // First run the callbacks of promises that the last items resolved, so that their time is counted too.
    if (from > 0) await Promise.resolve();
    if (clock.monotonicMs() - sinceMs >= TURN_MS) {
      await new Promise<void>((resolve) => clock.soon(resolve));
      sinceMs = clock.monotonicMs();
    }
    for (const item of items.slice(from, from + LOOK_AFTER)) work(item);
  }
}

/** Waits until the work is done or the deadline has passed. Errors of the work are ignored. */
export async function bounded(clock: Clock, work: Promise<unknown>, deadlineMs: number): Promise<void> {
  const ms = Math.max(0, deadlineMs - clock.monotonicMs());
  await within<unknown>(clock, work, { ms, late: () => undefined }).catch(() => undefined);
}
