/** Commands `nodes` and `leases`, and the kill switch. */
import type { Command } from "commander";
import type { Address, ClusterNode, KillSwitchState, KillWish, LaneLease } from "../../client/index.ts";
import { given } from "./answer.ts";
import { askNode, type RemotePorts } from "./remote.ts";
import { listing, tableOf } from "./table.ts";
import type { Paint } from "./terminal.ts";

export function addClusterCommands(program: Command, ports: RemotePorts): void {
  const nodes = program.command("nodes").description("list the nodes that are alive, and how many lanes each owns");
  askNode(nodes, ports, { ask: async (client) => ({ items: await client.nodes() }), show: nodesTable });
  const leases = program
    .command("leases")
    .description("list the owner of each signer's lane, its fencing token and its expiry");
  askNode(leases, ports, { ask: async (client) => ({ items: await client.leases() }), show: leasesTable });
}

/** Adds the commands `kill` and `unkill`. */
export function addKillSwitch(program: Command, ports: RemotePorts): void {
  const add = (command: Command, name: "kill" | "endKill") =>
    askNode(command, ports, {
      ask: (client, options: KillWish, signer?: Address) => client[name]({ ...given({ signer }), ...options }),
      show: killReport,
    })
      .argument("[signer]", "its address; without one, everything")
      .option("--reason <text>", "why; kept for the audit");
  add(program.command("kill").description("stop a signer, or everything, on all nodes: nothing is sent"), "kill");
  add(program.command("unkill").description("end a kill; waiting transactions are sent"), "endKill");
}

const killsTable = tableOf<KillSwitchState["kills"][number]>("nothing is stopped", {
  stopped: ({ signer }) => signer ?? "everything",
  by: "actor",
  reason: "reason",
});

function killReport({ durable, kills, nodes }: KillSwitchState, paint: Paint) {
  const written = durable ? "" : "not stored in the database yet: the nodes that know of it keep trying\n";
  const others = listing(nodes, paint, {
    node: "nodeId",
    url: "url",
    stopped: ({ told }) => (told ? "yes" : "not yet"),
  });
  return `${killsTable({ items: kills }, paint)}${written}${nodes.length === 0 ? "" : others}`;
}

const nodesTable = tableOf<ClusterNode>("no node is alive", {
  node: "nodeId",
  url: ({ url }) => url || "(embedded)",
  version: "version",
  mode: "mode",
  lanes: "lanes",
  started: "startedAt",
  "last heartbeat": "heartbeatAt",
});

const leasesTable = tableOf<LaneLease>("no lane is owned", {
  chain: "chainId",
  signer: "signer",
  node: "nodeId",
  token: "fencingToken",
  acquired: "acquiredAt",
  expires: "expiresAt",
});
