/** Time as the application sees it. `Date.now` and timers live behind this port alone, so that a test can own time. */
export interface Clock {
  /** Milliseconds that never go back; the only time that may make a node stop. */
  monotonicMs(): number;
  /** The time of day. An age is counted by the database's, which is on every row: the machine's own may be hours off. */
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

/** Who goes through many items looks at the clock after so many of them, and lets others have a turn after so long. */
const LOOK_AFTER = 16;
const TURN_MS = 5;

/** Whatever arrives meanwhile is looked at in between: who has many to go through keeps no caller waiting. */
export async function fewAtATime<T>(
  clock: Pick<Clock, "soon" | "monotonicMs">,
  items: readonly T[],
  work: (item: T) => void,
): Promise<void> {
  let sinceMs = clock.monotonicMs();
  for (let from = 0; from < items.length; from += LOOK_AFTER) {
    // What the last ones have set off counts as well: promises that are kept already go on here.
    if (from > 0) await Promise.resolve();
    if (clock.monotonicMs() - sinceMs >= TURN_MS) {
      await new Promise<void>((resolve) => clock.soon(resolve));
      sinceMs = clock.monotonicMs();
    }
    for (const item of items.slice(from, from + LOOK_AFTER)) work(item);
  }
}

/** Waits for the work, but not beyond the deadline; what it fails with is its own affair. */
export async function bounded(clock: Clock, work: Promise<unknown>, deadlineMs: number): Promise<void> {
  const ms = Math.max(0, deadlineMs - clock.monotonicMs());
  await within<unknown>(clock, work, { ms, late: () => undefined }).catch(() => undefined);
}
