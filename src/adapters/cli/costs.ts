/** `fencepost costs`: fees paid and value moved, for bookkeeping. */
import { type Command, Option } from "commander";
import type { Costs, CostsQuery, FencepostClient } from "../../client/index.ts";
import { inEther } from "./amounts.ts";
import { given, print } from "./answer.ts";
import { CHAIN_ID, instant, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { csvOf, tableOf } from "./table.ts";
import type { CliIo } from "./terminal.ts";

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

async function costs(client: FencepostClient, options: CostsOptions, io: CliIo) {
  const { by, from, to, signer, chainId, csv } = options;
  const answer = await client.costs(given({ by, from, to, signer, chainId }));
  if (csv !== true) print(answer, io, { ...options, show: costsTable });
  else io.stdout(csvOf(COST_COLUMNS, answer.items));
}

const COST_COLUMNS = [
  ...["group", "name", "chainId", "transactions", "confirmed", "failed", "failedShare"],
  ...["fees", "failedFees", "value"],
] as const;

const costsTable = ({ by, from, to, items }: Costs, paint: Parameters<ReturnType<typeof tableOf>>[1]) =>
  `${tableOf<Costs["items"][number]>(`no transaction was created from ${from} to ${to}`, {
    [by]: ({ group, name }) => (name === undefined ? group : `${name} ${group}`),
    chain: "chainId",
    transactions: "transactions",
    confirmed: "confirmed",
    failed: ({ failed, failedShare }) => `${failed} (${(failedShare * 100).toFixed(1)} %)`,
    fees: ({ fees }) => inEther(fees),
    "of failed": ({ failedFees }) => inEther(failedFees),
    value: ({ value }) => inEther(value),
  })({ items }, paint)}`;
