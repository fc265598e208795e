/** `fencepost costs` and `fencepost figures`: fees paid and value moved, and figures over time. */
import { type Command, Option } from "commander";
import type { Costs, CostsQuery, FencepostClient, History, HistoryQuery } from "../../client/index.ts";
import { inEther } from "./amounts.ts";
import { during, given, print } from "./answer.ts";
import { everyCost } from "./every-cost.ts";
import { askNode, CHAIN_ID, count, instant, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { csvOf, id, prose, spare, tableOf, time } from "./table.ts";
import type { CliIo, View } from "./terminal.ts";

type CostsOptions = RemoteOptions & CostsQuery & { readonly csv?: true };

export function addCosts(program: Command, ports: RemotePorts): void {
  const command = program
    .command("costs")
    .description(
      "fees paid, value moved and the failed share, of the transactions that were created in a range of time",
    );
  onNode<CostsOptions>(command, ports, (client, options) => costs(client, options, ports.io))
    .addOption(
      new Option("--by <what>", "what to add up by")
        .choices(["signer", "key", "day", "receiver"] as const)
        .default("signer"),
    )
    .option("--from <time>", "start, as a day (UTC) or an instant; by default 24 hours before the end", instant)
    .option("--to <time>", "end, not included; by default now", instant)
    .option("--signer <address>", "of this signer alone")
    .addOption(CHAIN_ID)
    .option("--csv", "print CSV, with amounts in wei");
}

export function addFigures(program: Command, ports: RemotePorts): void {
  const command = program
    .command("figures")
    .description("figures over time: created, completed, time to finality, fees, alerts");
  askNode(command, ports, { ask: (client, query: HistoryQuery) => client.history(query), show: figuresTable })
    .option("--from <time>", "start, as a day (UTC) or an instant; by default 24 hours before the end", instant)
    .option("--to <time>", "end, not included; by default now", instant)
    .option("--step <seconds>", "length of a bucket, from 60 on", count)
    .option("--signer <address>", "of this signer alone")
    .addOption(CHAIN_ID);
}

/** On a narrow terminal counts are left out before an amount is cut, here and in the table of costs. */
function figuresTable({ from, to, buckets, keys }: History, view: View) {
  const seconds = (ms: number | undefined) => (ms === undefined ? null : `${(ms / 1_000).toFixed(1)} s`);
  const shown = tableOf<History["buckets"][number]>(`nothing happened from ${from} to ${to}`, {
    at: time("at"),
    created: spare("created", 1),
    completed: spare("completed", 3),
    failed: spare("failed", 2),
    p50: spare(({ finalityMs }) => seconds(finalityMs?.p50), 5),
    p95: spare(({ finalityMs }) => seconds(finalityMs?.p95), 4),
    fees: ({ fees }) => inEther(fees),
    alerts: prose(({ troubles }) => troubles.map(({ code, count: times }) => `${code} ${times}`).join(", ")),
  })({ items: buckets }, view);
  const spend = tableOf<History["keys"][number]>("", {
    key: "key",
    chain: "chainId",
    completed: "completed",
    fees: ({ fees }) => inEther(fees),
  });
  return keys.length === 0 ? shown : `${shown}\n${spend({ items: keys }, view)}`;
}

async function costs(client: FencepostClient, options: CostsOptions, io: CliIo) {
  const { by, from, to, signer, chainId, csv } = options;
  const answer = await during(io, "adding up the costs", () =>
    everyCost(client.costs, given({ by, from, to, signer, chainId })),
  );
  if (csv !== true) print(answer, io, { ...options, show: costsTable });
  else io.stdout(csvOf(COST_COLUMNS, answer.items));
}

const COST_COLUMNS = [
  ...["group", "name", "chainId", "transactions", "confirmed", "failed", "failedShare"],
  ...["fees", "failedFees", "value"],
] as const;

const costsTable = ({ by, from, to, items }: Costs, view: View) =>
  `${tableOf<Costs["items"][number]>(`no transaction was created from ${from} to ${to}`, {
    [by]: id("group"),
    ...(items.some(({ name }) => name !== undefined) ? { name: spare(({ name }) => name, 5) } : {}),
    chain: spare("chainId", 4),
    transactions: spare("transactions", 1),
    confirmed: spare("confirmed", 2),
    failed: ({ failed, failedShare }) => `${failed} (${(failedShare * 100).toFixed(1)} %)`,
    fees: ({ fees }) => inEther(fees),
    "of failed": spare(({ failedFees }) => inEther(failedFees), 3),
    value: ({ value }) => inEther(value),
  })({ items }, view)}`;
