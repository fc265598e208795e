import { systemClock } from "../../src/adapters/system/clock.ts";
import { crowding } from "./crowding.ts";

const POLL_MS = 20;
const GIVE_UP_MS = 30_000;

export interface Patience {
  readonly everyMs?: number;
  /** Longest wait on an idle machine. On a crowded one it grows with the number of processes that wait for a core. */
  readonly giveUpMs?: number;
}

/** Polls for a fact outside this process that raises no event here, such as a file or another process. */
export async function waitUntil<T>(
  look: () => Promise<T> | T,
  what: string,
  { everyMs = POLL_MS, giveUpMs = GIVE_UP_MS }: Patience = {},
): Promise<T & {}> {
  let leftMs = giveUpMs;
  for (let lookedMs = systemClock.monotonicMs(); ; ) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    const nowMs = systemClock.monotonicMs();
    leftMs -= (nowMs - lookedMs) / crowding();
    lookedMs = nowMs;
    if (leftMs < 0) throw new Error(`waited in vain until ${what}`);
    await systemClock.sleep(everyMs);
  }
}
