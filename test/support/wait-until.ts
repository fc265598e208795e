import { systemClock } from "../../src/adapters/system/clock.ts";

const POLL_MS = 20;
const GIVE_UP_MS = 30_000;

export interface Patience {
  readonly everyMs?: number;
  readonly giveUpMs?: number;
}

/** Polls for a fact outside this process that raises no event here, such as a file or another process. */
export async function waitUntil<T>(
  look: () => Promise<T> | T,
  what: string,
  { everyMs = POLL_MS, giveUpMs = GIVE_UP_MS }: Patience = {},
): Promise<T & {}> {
  const deadlineMs = systemClock.monotonicMs() + giveUpMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (systemClock.monotonicMs() > deadlineMs) throw new Error(`waited in vain until ${what}`);
    await systemClock.sleep(everyMs);
  }
}
