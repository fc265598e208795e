import { isDatabaseAway } from "../../adapters/postgres/session/is-away.ts";
import { backoffMs } from "../../domain/pace/when.ts";
import type { Clock } from "../../ports/clock.ts";

export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Reports when the wait for the database begins, with its reason, and when it ends. */
  readonly say: (line: string, reason?: string) => void;
}

const TRY_AGAIN = { firstMs: 250, mostMs: 5_000 };

/**
 * Runs `work`, and retries while the database does not respond: nodes and their database often start together, in any
 * order. Errors that waiting cannot repair (a wrong password, a missing database) are thrown at once.
 */
export async function awaitDatabase<T>(work: () => Promise<T>, { clock, signal, say }: Patience): Promise<T> {
  for (let failures = 0; ; ) {
    try {
      const done = await work();
      if (failures > 0) say("the database answers");
      return done;
    } catch (error) {
      if (signal.aborted || !isDatabaseAway(error)) throw error;
      if (failures === 0) say("the database does not answer; waiting for it", reasonOf(error));
      failures++;
      await clock.sleep(backoffMs(TRY_AGAIN, failures, 1), signal);
    }
  }
}

/** Node's AggregateError of a connection to several addresses has an empty message: use its first cause. */
function reasonOf(error: unknown) {
  const cause: unknown = error instanceof AggregateError && error.message === "" ? error.errors[0] : error;
  return cause instanceof Error ? cause.message : String(cause);
}
