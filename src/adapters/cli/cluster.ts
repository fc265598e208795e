/** Commands `nodes` and `leases`, and the kill switch. */
import type { Command } from "commander";
import type {
  Address,
  ClusterNode,
  FencepostClient,
  KillSwitchState,
  KillWish,
  LaneLease,
} from "../../client/index.ts";
import { given } from "./answer.ts";
import { askNode, type RemotePorts } from "./remote.ts";
import { indented } from "./shorten.ts";
import { id, listing, prose, spare, tableOf, time } from "./table.ts";
import type { View } from "./terminal.ts";

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
      show: name === "kill" ? killReport : endReport,
      ...(name === "kill" && { question: killQuestion }),
    })
      .argument("[signer]", "its address; without one, everything")
      .option("--reason <text>", "why; kept for the audit");
  add(program.command("kill").description("stop a signer, or everything, on all nodes: nothing is sent"), "kill");
  add(program.command("unkill").description("end a kill; waiting transactions are sent"), "endKill");
}

/** The question makes no request: a stop must not depend on an answer that may not come. */
async function killQuestion(_: FencepostClient, __: KillWish, signer?: string) {
  return `Stop ${signer ?? "EVERY signer"} on all nodes? Nothing is sent until unkill.`;
}

const killsTable = tableOf<KillSwitchState["kills"][number]>("nothing is stopped", {
  stopped: id(({ signer }) => signer ?? "everything"),
  by: "actor",
  reason: prose("reason"),
});

function killReport({ durable, kills, nodes }: KillSwitchState, view: View) {
  const written = durable ? "" : `${indented("", NOT_STORED, view)}\n`;
  const others = listing(nodes, view, {
    node: id("nodeId"),
    url: id("url", 1),
    stopped: ({ told }) => (told ? "yes" : "not yet"),
  });
  const rest = nodes.length === 0 ? "" : `${indented("", OTHER_NODES, view)}\n${others}`;
  return `${killsTable({ items: kills }, view)}${written}${rest}`;
}

const NOT_STORED = "not stored in the database yet: the nodes that know of it keep trying";
const OTHER_NODES = "the node that was asked has stopped; the others:";
const OTHERS = "this kill has ended, but others are in force; the alert KILLED stays:";
const ENDED =
  "nothing is stopped, and the alert KILLED is resolved: each node sends what waits, in nonce order, when it reads this at its next heartbeat";

function endReport({ kills }: KillSwitchState, view: View) {
  if (kills.length === 0) return `${indented("", ENDED, view)}\n`;
  return `${indented("", OTHERS, view)}\n${killsTable({ items: kills }, view)}`;
}

const nodesTable = tableOf<ClusterNode>("no node is alive", {
  node: id("nodeId"),
  url: id(({ url }) => url || "(embedded)"),
  version: spare("version", 1),
  mode: spare("mode", 2),
  lanes: "lanes",
  started: time("startedAt"),
  "last heartbeat": time("heartbeatAt"),
});

const leasesTable = tableOf<LaneLease>("no lane is owned", {
  chain: "chainId",
  signer: id("signer"),
  node: id("nodeId"),
  token: "fencingToken",
  acquired: time("acquiredAt"),
  expires: time("expiresAt"),
});
