/** `nodes` and `leases`, and the switch that stops everything. */
import { type Command, Option } from "commander";
import type { ClusterNode, KillSwitchState, LaneLease } from "../../client/index.ts";
import { type Asking, askNode } from "./remote.ts";
import { listing } from "./table.ts";
import type { Paint } from "./terminal.ts";

export function addClusterCommands(program: Command, asking: Asking): void {
  const nodes = program.command("nodes").description("list the nodes that are alive, and how many lanes each owns");
  askNode(nodes, asking, { ask: async (client) => ({ items: await client.nodes() }), show: nodesTable });
  const leases = program
    .command("leases")
    .description("list who acts for which signer, under which fencing token and until when");
  askNode(leases, asking, { ask: async (client) => ({ items: await client.leases() }), show: leasesTable });
}

/** Stops, and goes on. */
export function addKillSwitch(program: Command, asking: Asking): void {
  const add = (command: Command, name: "kill" | "endKill") =>
    askNode(command, asking, {
      ask: (client) => {
        const [signer] = command.args;
        const { reason } = command.opts<{ readonly reason?: string }>();
        return client[name]({ ...(signer !== undefined && { signer }), ...(reason !== undefined && { reason }) });
      },
      show: killReport,
    })
      .argument("[signer]", "its address; without one, everything")
      .addOption(new Option("--reason <text>", "why; kept for the audit"));
  add(program.command("kill").description("stop a signer, or everything, on all nodes: nothing is sent"), "kill");
  add(program.command("unkill").description("end the order to stop; what waited is sent"), "endKill");
}

function killReport({ durable, kills, nodes }: KillSwitchState, paint: Paint): string {
  const inForce = kills.map(({ signer, actor, reason }) => [signer ?? "everything", actor, reason]);
  const stopped = kills.length === 0 ? "nothing is stopped\n" : listing(["stopped", "by", "reason"], inForce, paint);
  const written = durable ? "" : "not written down yet: the nodes that know of it keep trying\n";
  const told = nodes.map(({ nodeId, url, told: isTold }) => [nodeId, url, isTold ? "yes" : "not yet"]);
  return `${stopped}${written}${told.length === 0 ? "" : listing(["node", "url", "holds to it"], told, paint)}`;
}

function nodesTable({ items }: { readonly items: readonly ClusterNode[] }, paint: Paint): string {
  if (items.length === 0) return "no node is alive\n";
  const rows = items.map(({ nodeId, url, version, mode, lanes, startedAt, heartbeatAt }) => {
    return [nodeId, url === "" ? "(embedded)" : url, version, mode, String(lanes), startedAt, heartbeatAt];
  });
  return listing(["node", "url", "version", "mode", "lanes", "started", "last heartbeat"], rows, paint);
}

function leasesTable({ items }: { readonly items: readonly LaneLease[] }, paint: Paint): string {
  if (items.length === 0) return "no lane is owned\n";
  const rows = items.map(({ chainId, signer, nodeId, fencingToken, acquiredAt, expiresAt }) => {
    return [String(chainId), signer, nodeId, String(fencingToken), acquiredAt, expiresAt];
  });
  return listing(["chain", "signer", "node", "token", "acquired", "expires"], rows, paint);
}
