/** `signers`, and the operator's actions on a lane. */
import type { Command } from "commander";
import type { OrderOptions, RealignOrder, SignerLane, SignersPage, SignersQuery } from "../../client/index.ts";
import { roughly } from "./amounts.ts";
import { given } from "./answer.ts";
import { keyOption, reasonOption } from "./operate.ts";
import { askNode, chainIdOption, count, type RemotePorts } from "./remote.ts";
import { statusOf } from "./show-transaction.ts";
import { factsTable, listing } from "./table.ts";
import type { Paint } from "./terminal.ts";

interface Paging extends Pick<SignersQuery, "limit" | "after" | "chainId" | "owner"> {
  readonly fresh?: true;
  readonly needsAttention?: true;
}

export function addSigners(program: Command, ports: RemotePorts): void {
  const signers = program
    .command("signers")
    .description("list every signer's lanes; with an address, all details of one");
  askNode<SignersPage>(signers, ports, {
    ask: async (client) => {
      const [address] = signers.args;
      const { fresh = false, needsAttention, limit, after, owner, chainId } = signers.opts<Paging>();
      if (address !== undefined) return { items: [...(await client.signer(address, { fresh }))], next: null };
      const needs = needsAttention === true ? ("attention" as const) : undefined;
      const asked = given({ limit, after, owner, chainId, needs });
      if (Object.keys(asked).length > 0) return client.signersPage(asked);
      return { items: [...(await client.signers())], next: null };
    },
    show: ({ items, next }, paint) =>
      signers.args.length > 0 ? items.map((lane) => wholeLane(lane, paint)).join("\n") : lanesTable(items, next, paint),
  })
    .argument("[signer]", "its address")
    .option("--fresh", "of one signer: ask the chain now for its counts and the balance")
    .option("--limit <number>", "one page of this many, instead of all", count)
    .option("--after <cursor>", "the page after this cursor")
    .option("--owner <node>", "only those that this node owns")
    .option("--needs-attention", "only those that a person should look at")
    .addOption(chainIdOption());
  addLaneActions(program, ports);
}

function addLaneActions(program: Command, ports: RemotePorts): void {
  const add = (command: Command, action: "suspend" | "resume" | "realign", description: string) =>
    askNode<{ readonly items: readonly SignerLane[] }>(command.description(description), ports, {
      ask: async (client) => {
        const { reason, chainId, nonce, idempotencyKey } = command.opts<RealignOrder & OrderOptions>();
        const request = { reason, ...given({ chainId, nonce }) };
        return { items: await client[action](command.args[0] ?? "", request, given({ idempotencyKey })) };
      },
      show: ({ items }, paint) => items.map((lane) => wholeLane(lane, paint)).join("\n"),
    })
      .argument("<signer>", "its address")
      .addOption(reasonOption())
      .addOption(keyOption())
      .addOption(chainIdOption());
  add(program.command("suspend"), "suspend", "send nothing more from a signer; creates are accepted and wait");
  add(program.command("resume"), "resume", "send again from a signer that was suspended");
  add(program.command("realign"), "realign", "lower a signer's next nonce after a lying endpoint raised it").option(
    "--nonce <number>",
    "the new next nonce; by default, the lowest possible one",
    count,
  );
}

function lanesTable(items: readonly SignerLane[], next: string | null, paint: Paint): string {
  if (items.length === 0) return "there is no signer\n";
  const rows = items.map((lane) => [
    ...[lane.signer, String(lane.chainId), String(lane.cursor ?? "-"), String(lane.pending), String(lane.stuck)],
    ...[String(lane.confirmed), String(lane.failed), String(lane.holes.length)],
    ...[lane.balance === null ? "-" : roughly(lane.balance), lane.owner?.nodeId ?? "-", troubleOf(lane)],
  ]);
  const more = next === null ? "" : `more: fencepost signers --after ${next}\n`;
  return `${listing(LANE_HEADS, rows, paint, (cell) => (/^(suspended|away|no lease)/.test(cell) ? "red" : null))}${more}`;
}

const LANE_HEADS = "signer chain next pending stuck confirmed failed holes ether node state".split(" ");

function troubleOf({ suspended, suspendedBy, signerAway }: SignerLane): string {
  if (suspended) return `suspended (${suspendedBy ?? "OPERATOR"})`;
  return signerAway === null ? "ok" : `away: ${signerAway.reason}`;
}

function wholeLane(lane: SignerLane, paint: Paint): string {
  const { headOfLine: head, chainCounts: counts, lease, owner } = lane;
  const facts: readonly (readonly [string, string | null])[] = [
    ["signer", lane.signer],
    ["chain", String(lane.chainId)],
    ["state", troubleOf(lane)],
    ["next nonce", lane.cursor === null ? "(unused)" : String(lane.cursor)],
    ["chain counts", counts === null ? null : `${counts.latest} mined, ${counts.pending ?? "-"} with pending`],
    ["balance", lane.balance === null ? null : `${roughly(lane.balance)} ether`],
    [
      "transactions",
      `${lane.pending} pending, ${lane.stuck} stuck, ${lane.confirmed} confirmed, ${lane.failed} failed`,
    ],
    ["reserved", lane.reserved === 0 ? null : `${lane.reserved} nonces`],
    ["oldest pending", lane.oldestPendingAgeSeconds === null ? null : `${Math.round(lane.oldestPendingAgeSeconds)} s`],
    [
      "head of line",
      head === null
        ? null
        : `nonce ${head.nonce}, ${statusOf({ ...head, subState: null })}${head.held ? ", held back" : ""}, ${head.txId}`,
    ],
    ["node", owner === null ? "(no node owns it)" : `${owner.nodeId} ${owner.url}`.trimEnd()],
    ["lease", lease === null ? null : `token ${lease.fencingToken}, until ${lease.expiresAt}`],
    ...lane.holes.map(({ nonce, detail }) => ["hole", `nonce ${nonce}: ${detail}`] as const),
    ...(lane.decisions ?? []).map(
      ({ at, action, actor, reason }) => ["decided", `${at} ${action}, ${actor}: ${reason}`] as const,
    ),
  ];
  return factsTable(facts, paint);
}
