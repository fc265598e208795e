/** `nodes`, `leases`, and the kill switch. */
import type { Command } from "commander";
import type { ClusterNode, KillSwitchState, LaneLease } from "../../client/index.ts";
import { given } from "./answer.ts";
import { askNode, type RemotePorts } from "./remote.ts";
import { listing } from "./table.ts";
import type { Paint } from "./terminal.ts";

export function addClusterCommands(program: Command, ports: RemotePorts): void {
  const nodes = program.command("nodes").description("list the nodes that are alive, and how many lanes each owns");
  askNode(nodes, ports, { ask: async (client) => ({ items: await client.nodes() }), show: nodesTable });
  const leases = program
    .command("leases")
    .description("list the owner of each signer's lane, its fencing token and its expiry");
  askNode(leases, ports, { ask: async (client) => ({ items: await client.leases() }), show: leasesTable });
}

/** `kill` and `unkill`. */
export function addKillSwitch(program: Command, ports: RemotePorts): void {
  const add = (command: Command, name: "kill" | "endKill") =>
    askNode(command, ports, {
      ask: (client) => {
        const [signer] = command.args;
        const { reason } = command.opts<{ readonly reason?: string }>();
        return client[name](given({ signer, reason }));
      },
      show: killReport,
    })
      .argument("[signer]", "its address; without one, everything")
      .option("--reason <text>", "why; kept for the audit");
  add(program.command("kill").description("stop a signer, or everything, on all nodes: nothing is sent"), "kill");
  add(program.command("unkill").description("end a kill; waiting transactions are sent"), "endKill");
}

function killReport({ durable, kills, nodes }: KillSwitchState, paint: Paint): string {
  const inForce = kills.map(({ signer, actor, reason }) => [signer ?? "everything", actor, reason]);
  const stopped = kills.length === 0 ? "nothing is stopped\n" : listing(["stopped", "by", "reason"], inForce, paint);
  const written = durable ? "" : "not stored in the database yet: the nodes that know of it keep trying\n";
  const rows = nodes.map(({ nodeId, url, told }) => [nodeId, url, told ? "yes" : "not yet"]);
  return `${stopped}${written}${rows.length === 0 ? "" : listing(["node", "url", "stopped"], rows, paint)}`;
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
