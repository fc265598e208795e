import { laneStoreContract } from "../contracts/lane-store.contract.ts";
import { leaseStoreContract } from "../contracts/lease-store.contract.ts";
import { queryStoreContract } from "../contracts/query-store.contract.ts";
import type { StoreSubject } from "../contracts/store-subject.ts";
import { createManualClock } from "./manual-clock.ts";
import { MemoryDatabase } from "./memory-store.ts";

async function createSubject(): Promise<StoreSubject> {
  const clock = createManualClock();
  const database = new MemoryDatabase(clock);
  return {
    connect: async () => database.connect(),
    expire: async (instanceId) => {
      const row = database.state.instances.get(instanceId);
      if (row !== undefined) row.expiresAt = new Date(clock.now().getTime() - 1);
    },
    tick: () => clock.advance(1),
    intake: async (...intents) => {
      for (const intent of intents) database.insertIntake(intent);
    },
    close: async () => undefined,
  };
}

leaseStoreContract("in memory", createSubject);
laneStoreContract("in memory", createSubject);
queryStoreContract("in memory", createSubject);
