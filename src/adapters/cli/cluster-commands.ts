/** Commands that ask a running node: `nodes` and `leases`. */
import { type Command, Option } from "commander";
import { type ClusterNode, FencepostApiError, type FencepostClient, type LaneLease } from "../../client/index.ts";
import { CommandFailed } from "./failure.ts";
import { table } from "./table.ts";

export interface AskOptions {
  readonly config?: string;
  readonly json?: boolean;
  /** Instead of the node that the configuration of this directory describes. */
  readonly url?: string;
}

export interface ClusterActions {
  connect(options: AskOptions): Promise<FencepostClient>;
}

interface Question<T> {
  readonly ask: (client: FencepostClient) => Promise<readonly T[]>;
  readonly present: (items: readonly T[]) => string;
}

export function addClusterCommands(program: Command, actions: ClusterActions, stdout: (text: string) => void): void {
  const answer = <T>(command: Command, { ask, present }: Question<T>): void => {
    command
      .addOption(new Option("--url <url>", "any node, instead of the one this configuration describes"))
      .action(async () => {
        const options = command.optsWithGlobals<AskOptions>();
        const items = await ask(await actions.connect(options)).catch(explain);
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

function explain(error: unknown): never {
  if (!(error instanceof FencepostApiError)) throw error;
  if (error.code === "UNREACHABLE") {
    throw new CommandFailed([`${error.detail}: start a node, or name another with --url`], undefined, { cause: error });
  }
  if (error.code === "UNAUTHENTICATED") {
    const line = "the node wants a key: run this where FENCEPOST_API_KEYS is set as it is for the node";
    throw new CommandFailed([line], undefined, { cause: error });
  }
  throw new CommandFailed([error.message], undefined, { cause: error });
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
