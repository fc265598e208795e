/** What every command shares that asks a running node, and those that only ask: `nodes` and `leases`. */
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  type ClusterNode,
  FencepostApiError,
  type FencepostClient,
  type KillSwitchState,
  type LaneLease,
  type ReplaceOrder,
} from "../../client/index.ts";
import type { PricedOrder } from "../../contract/actions.ts";
import { CommandFailed } from "./failure.ts";
import { type Answer, actionReport, answerWith, type CommandOptions, type Output, table } from "./present.ts";

export interface RemoteOptions extends CommandOptions {
  /** Instead of the node that the configuration of this directory describes. */
  readonly url?: string;
  /** Instead of the first key of the configuration. */
  readonly apiKey?: string;
}

export interface RemoteActions {
  /** The node to ask. */
  connect(options: RemoteOptions): Promise<FencepostClient>;
}

export interface Asking {
  readonly actions: RemoteActions;
  readonly io: Output;
}

/** A command whose answer a running node gives. */
export function askNode<T>(command: Command, { actions, io }: Asking, { ask, show }: Answer<FencepostClient, T>) {
  answerWith<RemoteOptions, T>(command, io, {
    ask: async (options) => ask(await actions.connect(options)).catch(explainRefusal),
    show,
  });
  return command
    .addOption(new Option("--url <url>", "any node, instead of the one this configuration describes"))
    .addOption(new Option("--api-key <secret>", "instead of the configured key with the most scopes"));
}

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

function killReport({ durable, kills, nodes }: KillSwitchState): string {
  const inForce = kills.map(({ signer, actor, reason }) => [signer ?? "everything", actor, reason]);
  const stopped = kills.length === 0 ? "nothing is stopped\n" : table([["stopped", "by", "reason"], ...inForce]);
  const written = durable ? "" : "not written down yet: the nodes that know of it keep trying\n";
  const told = nodes.map(({ nodeId, url, told: isTold }) => [nodeId, url, isTold ? "yes" : "not yet"]);
  return `${stopped}${written}${told.length === 0 ? "" : table([["node", "url", "holds to it"], ...told])}`;
}

/** One line that says what to do; the stack of a refusal does not help. */
function explainRefusal(error: unknown): never {
  if (!(error instanceof FencepostApiError)) throw error;
  throw new CommandFailed([lineOf(error)], undefined, { cause: error });
}

function lineOf(error: FencepostApiError): string {
  if (error.code === "UNREACHABLE") return `${error.detail}: start a node, or name another with --url`;
  if (error.code === "UNAUTHENTICATED") {
    return "the node wants a key: run this where FENCEPOST_API_KEYS is set as it is for the node, or give --api-key";
  }
  return error.message;
}

function nodesTable({ items }: { readonly items: readonly ClusterNode[] }): string {
  if (items.length === 0) return "no node is alive\n";
  const rows = items.map(({ nodeId, url, version, mode, lanes, startedAt, heartbeatAt }) => {
    return [nodeId, url === "" ? "(embedded)" : url, version, mode, String(lanes), startedAt, heartbeatAt];
  });
  return table([["node", "url", "version", "mode", "lanes", "started", "last heartbeat"], ...rows]);
}

function leasesTable({ items }: { readonly items: readonly LaneLease[] }): string {
  if (items.length === 0) return "no lane is owned\n";
  const rows = items.map(({ chainId, signer, nodeId, fencingToken, acquiredAt, expiresAt }) => {
    return [String(chainId), signer, nodeId, String(fencingToken), acquiredAt, expiresAt];
  });
  return table([["chain", "signer", "node", "token", "acquired", "expires"], ...rows]);
}

const wei = (flag: string, what: string) => new Option(`${flag} <wei>`, `${what}, in wei`).argParser(digits);
const fees = () => [
  wei("--max-fee-per-gas", "fee cap"),
  wei("--max-priority-fee-per-gas", "tip"),
  wei("--gas-price", "price of a legacy transaction"),
];

/** By the names that the client has for it. */
type Operation = "cancel" | "replace" | "resubmit" | "reprice" | "approve" | "reject";

/** What an operator does to one transaction. */
export function addOperating(program: Command, asking: Asking): void {
  const add = (command: Command, description: string, options: readonly Option[] = []) =>
    addOperation(command.description(description), options, asking);
  const payload = new Option("--payload <json>", 'as in POST /tx: {"to":"0x…","value":"1"}').argParser(json);
  const cancelling = "use a transaction's nonce up with nothing; whichever payload is mined decides";
  const repricing = "sign a transaction's payload again for more: the market's price, or the one given";
  add(program.command("cancel"), cancelling, fees());
  add(program.command("replace"), "put another payload at a transaction's nonce", [payload.makeOptionMandatory()]);
  add(program.command("resubmit"), "send a transaction's stored bytes again, now");
  add(program.command("reprice"), repricing, fees());
  add(program.command("approve"), "let a transaction that waits for approval have its nonce; takes a second API key");
  add(program.command("reject"), "refuse a transaction that waits for approval; takes a second API key");
}

/** The options of the command are the order. */
function addOperation(command: Command, options: readonly Option[], asking: Asking): void {
  const action = command.name() as Operation;
  askNode(command, asking, {
    ask: (client) => {
      const { url: _, apiKey: __, ...order } = command.opts<RemoteOptions & PricedOrder & ReplaceOrder>();
      return client[action](command.args[0] ?? "", order);
    },
    show: (transaction) => actionReport(action, transaction),
  })
    .argument("<txId>", "its id")
    .addOption(new Option("--reason <text>", "why; kept in the history").makeOptionMandatory());
  for (const option of options) command.addOption(option);
}

function digits(text: string): string {
  if (!/^[0-9]{1,78}$/.test(text)) throw new InvalidArgumentError("It must be a whole number of wei.");
  return text;
}

export function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("It must be JSON.");
  }
}
