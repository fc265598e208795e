import type { Clock } from "../../ports/clock.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../ports/lane-store.ts";

const PAUSE_MS = 100;

/** A database that was reached and is slow at this moment is no reason not to start: asked again, for so long. */
export async function askAgain<T>(
  work: () => Promise<T>,
  clock: Clock,
  { forMs, signal }: { readonly forMs: number; readonly signal: AbortSignal },
): Promise<T> {
  const untilMs = clock.monotonicMs() + forMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const mayPass = error instanceof StoreUnavailable || error instanceof OutcomeUnknown;
      if (!mayPass || clock.monotonicMs() >= untilMs) throw error;
      await clock.sleep(PAUSE_MS, signal);
    }
  }
}
