/** Commands that ask a running node: `nodes` and `leases`. */
import type { Command } from "commander";
import type { ClusterNode, FencepostClient, LaneLease } from "../../client/index.ts";
import { addRemoteOptions, explainRefusal, type RemoteActions, type RemoteOptions } from "./remote.ts";
import { table } from "./table.ts";

interface Question<T> {
  readonly ask: (client: FencepostClient) => Promise<readonly T[]>;
  readonly present: (items: readonly T[]) => string;
}

export function addClusterCommands(program: Command, actions: RemoteActions, stdout: (text: string) => void): void {
  const answer = <T>(command: Command, { ask, present }: Question<T>): void => {
    addRemoteOptions(command).action(async () => {
      const options = command.optsWithGlobals<RemoteOptions>();
      const items = await ask(await actions.connect(options)).catch(explainRefusal);
      stdout(options.json === true ? `${JSON.stringify({ items }, null, 2)}\n` : present(items));
    });
  };
  const nodes = program.command("nodes").description("list the nodes that are alive, and how many lanes each owns");
  answer(nodes, { ask: (client) => client.nodes(), present: nodesTable });
  const leases = program
    .command("leases")
    .description("list who acts for which signer, under which fencing token and until when");
  answer(leases, { ask: (client) => client.leases(), present: leasesTable });
}

function nodesTable(nodes: readonly ClusterNode[]): string {
  if (nodes.length === 0) return "no node is alive\n";
  const rows = nodes.map((node) => [
    node.nodeId,
    node.url === "" ? "(embedded)" : node.url,
    node.version,
    node.mode,
    String(node.lanes),
    node.startedAt,
    node.heartbeatAt,
  ]);
  return table([["node", "url", "version", "mode", "lanes", "started", "last heartbeat"], ...rows]);
}

function leasesTable(leases: readonly LaneLease[]): string {
  if (leases.length === 0) return "no lane is owned\n";
  const rows = leases.map((lease) => [
    String(lease.chainId),
    lease.signer,
    lease.nodeId,
    String(lease.fencingToken),
    lease.acquiredAt,
    lease.expiresAt,
  ]);
  return table([["chain", "signer", "node", "token", "acquired", "expires"], ...rows]);
}
