import type { KillStore } from "../../../ports/kill-store.ts";
import { ask } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import { endKills, keepKills, readKills } from "../statements/kill.ts";
import { write } from "./leases.ts";

/** Not on the connections of creates and moves: a kill does not wait behind the transactions that it is to stop. */
export function killsIn(leasing: DurableRuntime): KillStore {
  return {
    keepKills: async (kills) => void (await write(leasing, keepKills(kills))),
    endKills: async ({ signer, actor, reason }, unkept) =>
      void (await write(leasing, keepKills(unkept), endKills(signer, actor, reason))),
    kills: (killIds) => ask(leasing.connections, readKills(killIds)),
  };
}
