/** Time as the application sees it. `Date.now` and timers live behind this port alone, so that a test can own time. */
export interface Clock {
  /** Milliseconds that never go back; the only time that may make a node stop. */
  monotonicMs(): number;
  /** Wall clock, for people to read. Nothing decides by it. */
  now(): Date;
  /** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms`; the returned function cancels. */
  after(ms: number, callback: () => void): () => void;
  /** Calls back when everything that has arrived by now was looked at: in this turn of the event loop, not in this call. */
  soon(callback: () => void): void;
}

/** Waits for the work, but not beyond the deadline; what it fails with is its own affair. */
export async function bounded(clock: Clock, work: Promise<unknown>, deadlineMs: number): Promise<void> {
  const done = new AbortController();
  const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
  const timeout = clock.sleep(leftMs, done.signal).catch(() => undefined);
  await Promise.race([work.catch(() => undefined), timeout]);
  done.abort();
}
