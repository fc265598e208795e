import type { Clock } from "../../ports/clock.ts";
import { OutcomeUnknown, StoreUnavailable } from "../../ports/lane-store.ts";

export interface Patience {
  readonly forMs: number;
  readonly pauseMs?: number;
  readonly signal?: AbortSignal;
  /** What may be over by the next time. */
  readonly mayPass?: (error: unknown) => boolean;
}

/** A database that was reached and is slow at this moment is no reason to give up: asked again, for so long. */
export async function askAgain<T>(work: () => Promise<T>, clock: Clock, patience: Patience): Promise<T> {
  const { forMs, pauseMs = 100, signal, mayPass = isSilent } = patience;
  const untilMs = clock.monotonicMs() + forMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!mayPass(error) || clock.monotonicMs() >= untilMs) throw error;
      await clock.sleep(pauseMs, signal);
    }
  }
}

function isSilent(error: unknown) {
  return error instanceof StoreUnavailable || error instanceof OutcomeUnknown;
}
