/** The command `signers`, and commands for an operator's actions on a lane. */
import type { Command } from "commander";
import type {
  Address,
  FencepostClient,
  OrderOptions,
  RealignOrder,
  SignerLane,
  SignersPage,
  SignersQuery,
} from "../../client/index.ts";
import { roughly } from "./amounts.ts";
import { given } from "./answer.ts";
import { IDEMPOTENCY_KEY, REASON } from "./operate.ts";
import { askNode, CHAIN_ID, count, type RemotePorts } from "./remote.ts";
import { agoOf, dated } from "./shorten.ts";
import { factsTable, id, prose, spare, tableOf, time } from "./table.ts";
import type { View } from "./terminal.ts";

interface Paging extends Omit<SignersQuery, "needs"> {
  readonly fresh?: true;
  readonly needsAttention?: true;
}

export function addSigners(program: Command, ports: RemotePorts): void {
  const signers = program
    .command("signers")
    .description("list every signer's lanes; with an address, all details of one");
  askNode<Paging, SignersPage>(signers, ports, {
    ask: async (client, { fresh = false, needsAttention, ...paging }, address?: Address) => {
      if (address !== undefined) return { items: [...(await client.signer(address, { fresh }))], next: null };
      const asked: SignersQuery = { ...paging, ...(needsAttention && { needs: "attention" }) };
      if (Object.keys(asked).length > 0) return client.signersPage(asked);
      return { items: [...(await client.signers())], next: null };
    },
    show: (page, view) => (signers.args.length > 0 ? wholeLanes(page, view) : lanesPage(page, view)),
  })
    .argument("[signer]", "its address")
    .option("--fresh", "of one signer: ask the chain now for its counts and the balance")
    .option("--limit <number>", "one page of this many, instead of all", count)
    .option("--after <cursor>", "the page after this cursor")
    .option("--owner <node>", "only those that this node owns")
    .option("--needs-attention", "only those that a person should look at")
    .addOption(CHAIN_ID);
  const add = (command: Command, description: string) =>
    askNode(command.description(description), ports, {
      ask: async (client, { idempotencyKey, ...request }: RealignOrder & OrderOptions, signer) => ({
        items: await client[command.name() as "suspend" | "resume" | "realign"](
          signer,
          request,
          given({ idempotencyKey }),
        ),
      }),
      show: wholeLanes,
      ...(command.name() === "suspend" && { question: suspendQuestion }),
    })
      .argument("<signer>", "its address")
      .addOption(REASON)
      .addOption(IDEMPOTENCY_KEY)
      .addOption(CHAIN_ID);
  add(program.command("suspend"), "send nothing more from a signer; creates are accepted and wait");
  add(program.command("resume"), "send again from a signer that was suspended");
  add(program.command("realign"), "lower a signer's next nonce after a lying endpoint raised it").option(
    "--nonce <number>",
    "the new next nonce; by default, the lowest possible one",
    count,
  );
}

/** Asks before a signer is suspended on several chains at once: without `--chain-id` all its lanes stop. */
async function suspendQuestion(client: FencepostClient, { chainId }: RealignOrder, signer: Address) {
  if (chainId !== undefined) return null;
  const lanes = await client.signer(signer).catch(() => null);
  if (lanes?.length === 1) return null;
  const chains = lanes === null ? "" : ` (${lanes.map((lane) => lane.chainId).join(", ")})`;
  return `Suspend ${signer} on all its chains${chains}? One chain alone: --chain-id.`;
}

const lanesTable = tableOf<SignerLane>(
  "there is no signer",
  {
    signer: id("signer"),
    name: spare(({ name }) => name ?? "", 3),
    chain: spare("chainId", 4),
    next: spare("cursor", 6),
    pending: "pending",
    stuck: "stuck",
    confirmed: spare("confirmed", 7),
    failed: spare("failed", 8),
    holes: spare(({ holes }) => holes.length, 5),
    // A balance is never shown without its age.
    ether: spare(({ balance }) => balance && roughly(balance), 1),
    "as of": time("balanceAsOf", 1),
    node: id(({ owner }) => owner?.nodeId, 2),
    state: prose(troubleOf),
  },
  (cell) => (/^(suspended|away|answers falsely|no owner|no lease)/.test(cell) ? "red" : null),
);

function lanesPage(page: SignersPage, view: View) {
  const more = page.next === null ? "" : `more: fencepost signers --after ${page.next}${view.reach}\n`;
  return `${lanesTable(page, view)}${more}`;
}

function troubleOf({ suspended, suspendedBy, signerAway, unowned }: SignerLane) {
  if (suspended) return `suspended (${suspendedBy ?? "OPERATOR"})`;
  if (unowned !== null) return `no owner: ${unowned.reason}`;
  if (signerAway === null) return "ok";
  return `${signerAway.lies ? "answers falsely" : "away"}: ${signerAway.reason}`;
}

function wholeLanes({ items }: { readonly items: readonly SignerLane[] }, view: View) {
  return items.map((lane) => factsTable(factsOf(lane, view), view)).join("\n");
}

function factsOf(lane: SignerLane, view: View) {
  const { headOfLine: head, chainCounts: counts, oldestPendingAgeSeconds: age, lease, owner, balance } = lane;
  return {
    signer: lane.signer,
    name: lane.name,
    chain: lane.chainId,
    state: troubleOf(lane),
    "next nonce": lane.cursor ?? "(unused)",
    "chain counts":
      counts && `${counts.latest} mined, ${counts.pending ?? "-"} with pending${agoOf(counts.asOf, view)}`,
    balance: balance && `${roughly(balance)} ether${agoOf(lane.balanceAsOf, view)}`,
    transactions: `${lane.pending} pending, ${lane.stuck} stuck, ${lane.confirmed} confirmed, ${lane.failed} failed`,
    reserved: lane.reserved === 0 ? null : `${lane.reserved} nonces`,
    "oldest pending": age === null ? null : `${Math.round(age)} s`,
    "head of line": head && `nonce ${head.nonce}, ${head.state}${head.held ? ", held back" : ""}, ${head.txId}`,
    node: owner === null ? "(no node owns it)" : `${owner.nodeId} ${owner.url}`.trimEnd(),
    lease: lease && `token ${lease.fencingToken}, until ${dated(lease.expiresAt, view)}`,
    hole: lane.holes.map(({ nonce, detail }) => `nonce ${nonce}: ${detail}`),
    decided: lane.decisions?.map(
      ({ at, action, actor, reason }) => `${dated(at, view)} ${action}, ${actor}: ${reason}`,
    ),
  };
}
