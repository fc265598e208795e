import type { Kill } from "../../../domain/cluster/kills.ts";
import type { KillStore } from "../../../ports/kill-store.ts";
import { ask } from "../session/connections.ts";
import { type DurableRuntime, durably } from "../session/durably.ts";
import { endKills, keepKills, readKills } from "../statements/kill.ts";
import type { Command } from "../statements/statement.ts";

/** Not on the connections of creates and moves: an order to stop does not wait behind what it is to stop. */
export function killsIn(leasing: DurableRuntime): KillStore {
  const write = (...commands: readonly Command[]): Promise<void> =>
    durably(leasing, {
      statements: commands.length,
      waits: commands.length,
      find: async () => undefined,
      decide: () => ({ commands, result: undefined }),
    });
  return {
    keepKills: (kills) => write(keeping(kills)),
    endKills: ({ signer, actor, reason }, unkept) =>
      write(keeping(unkept), { statement: endKills, values: [signer, actor, reason] }),
    kills: (killIds) => ask(leasing.connections, readKills, [killIds]),
  };
}

function keeping(kills: readonly Kill[]): Command {
  const rows = kills.map(({ killId, signer, actor, reason }) => ({ kill_id: killId, signer, actor, reason }));
  return { statement: keepKills, values: [JSON.stringify(rows)] };
}
