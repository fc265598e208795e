import type { Clock } from "../../ports/clock.ts";

/** Waits for the work, but not beyond the deadline; what it fails with is its own affair. */
export async function bounded(clock: Clock, work: Promise<unknown>, deadlineMs: number): Promise<void> {
  const done = new AbortController();
  const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
  const timeout = clock.sleep(leftMs, done.signal).catch(() => undefined);
  await Promise.race([work.catch(() => undefined), timeout]);
  done.abort();
}
