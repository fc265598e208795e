import { sessionLockContract } from "../contracts/session-lock.contract.ts";
import { createManualClock } from "./manual-clock.ts";
import { MemorySessionLock } from "./memory-session-lock.ts";
import { MemoryDatabase } from "./memory-store.ts";

sessionLockContract("in memory", async () => {
  const clock = createManualClock();
  const database = new MemoryDatabase(clock);
  return {
    connect: async () => new MemorySessionLock(database),
    interrupt: async (lock) => (lock as MemorySessionLock).interrupt(),
    store: async () => database.connect(),
    keys: async () => [...database.state.locks],
    until: async (fact) => {
      while (!(await fact())) await clock.advance(10);
    },
    close: async () => undefined,
  };
});
