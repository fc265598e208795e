import { wakeUpsContract } from "../contracts/wake-ups.contract.ts";
import { MemoryHints, type MemoryWakeUps } from "./memory-wake-ups.ts";

wakeUpsContract("in memory", async () => {
  const hints = new MemoryHints();
  return {
    connect: async () => hints.connect(),
    until: async (fact) => {
      while (!fact()) await Promise.resolve();
    },
    interrupt: async (wakeUps) => {
      (wakeUps as MemoryWakeUps).disconnect();
      (wakeUps as MemoryWakeUps).reconnect();
    },
    close: async () => undefined,
  };
});
