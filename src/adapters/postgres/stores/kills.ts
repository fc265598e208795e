import type { KillStore } from "../../../ports/kill-store.ts";
import { ask } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import { endKills, keepKills, readKills } from "../statements/kill.ts";
import { write } from "./leases.ts";

/** Implements KillStore on the lease's connections: a kill must not wait behind the transactions that it stops. */
export function killsIn(leasing: DurableRuntime): KillStore {
  return {
    keepKills: async (kills) => void (await write(leasing, keepKills(kills))),
    endKills: async ({ signer, actor, reason }, unkept) =>
      void (await write(leasing, keepKills(unkept), endKills(signer, actor, reason))),
    kills: (killIds) => ask(leasing.connections, readKills(killIds)),
  };
}
