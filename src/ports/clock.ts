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

/** The work's answer, or what `late` returns or throws where there is none after `ms`. */
export async function within<T>(
  clock: Clock,
  work: Promise<T>,
  { ms, late }: { readonly ms: number; readonly late: () => T },
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

/** So many keep the event loop busy for a few milliseconds, as long as each takes some tenths of one. */
const AT_ONCE = 16;

/** Whatever arrives meanwhile is looked at in between: who has many to go through keeps no caller waiting. */
export async function fewAtATime<T>(
  clock: Pick<Clock, "soon">,
  items: readonly T[],
  work: (item: T) => void,
): Promise<void> {
  for (let from = 0; from < items.length; from += AT_ONCE) {
    if (from > 0) await new Promise<void>((resolve) => clock.soon(resolve));
    for (const item of items.slice(from, from + AT_ONCE)) work(item);
  }
}

/** Waits for the work, but not beyond the deadline; what it fails with is its own affair. */
export async function bounded(clock: Clock, work: Promise<unknown>, deadlineMs: number): Promise<void> {
  const ms = Math.max(0, deadlineMs - clock.monotonicMs());
  await within<unknown>(clock, work, { ms, late: () => undefined }).catch(() => undefined);
}
