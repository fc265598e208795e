import { systemClock } from "../../src/adapters/system/clock.ts";

const POLL_MS = 10;
const GIVE_UP_MS = 30_000;

/** For facts outside this process that announce themselves to nobody: a file, another process. */
export async function waitUntil<T>(look: () => Promise<T> | T, what: string): Promise<T & {}> {
  const deadlineMs = systemClock.monotonicMs() + GIVE_UP_MS;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (systemClock.monotonicMs() > deadlineMs) throw new Error(`waited in vain until ${what}`);
    await systemClock.sleep(POLL_MS);
  }
}
