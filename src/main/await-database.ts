import { isDatabaseAway } from "../adapters/postgres/session/is-away.ts";
import { backoffMs } from "../domain/backoff.ts";
import type { Clock } from "../ports/clock.ts";

export interface Patience {
  readonly clock: Clock;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** Said once when the wait begins, with why, and once when it is over. */
  readonly say: (line: string, reason?: string) => void;
}

const TRY_AGAIN = { firstMs: 250, mostMs: 5_000 };

/**
 * Does what needs the database as soon as it is there. Nodes and their database are often started together, and after an
 * outage of the machine in any order. A node that ended at the first failed connection would need a supervisor.
 * What no waiting repairs (a password, a missing database) is thrown at once.
 */
export async function awaitDatabase<T>(work: () => Promise<T>, { clock, signal, say }: Patience): Promise<T> {
  for (let failures = 0; ; ) {
    try {
      const done = await work();
      if (failures > 0) say("the database is there");
      return done;
    } catch (error) {
      if (signal.aborted || !isDatabaseAway(error)) throw error;
      if (failures === 0) say("the database does not answer; waiting for it", reasonOf(error));
      failures++;
      await clock.sleep(backoffMs(TRY_AGAIN, failures, 1), signal);
    }
  }
}

/** A connection that tried several addresses fails with an error whose own message is empty. */
function reasonOf(error: unknown): string {
  const telling: unknown = error instanceof AggregateError && error.message === "" ? error.errors[0] : error;
  return telling instanceof Error ? telling.message : String(telling);
}
