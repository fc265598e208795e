import type { Clock } from "../../ports/clock.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../ports/lane-store.ts";

const PAUSE_MS = 100;

/** A database that was reached and is slow at this moment is no reason not to start: asked again, for one lease. */
export async function takeInstance(
  lease: { start(): Promise<void> },
  clock: Clock,
  { forMs, signal }: { readonly forMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const untilMs = clock.monotonicMs() + forMs;
  for (;;) {
    try {
      return await lease.start();
    } catch (error) {
      const mayPass = error instanceof StoreUnavailable || error instanceof OutcomeUnknown;
      if (!mayPass || clock.monotonicMs() >= untilMs) throw error;
      await clock.sleep(PAUSE_MS, signal);
    }
  }
}
