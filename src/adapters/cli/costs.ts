/** `fencepost costs` and `fencepost export`: figures for bookkeeping, and completions for other systems. */
import { type Command, Option } from "commander";
import type { Completion, Costs, CostsQuery, FencepostClient } from "../../client/index.ts";
import { FencepostApiError } from "../../client/index.ts";
import { inEther } from "./amounts.ts";
import { given, print } from "./answer.ts";
import { misused } from "./failure.ts";
import { CHAIN_ID, count, instant, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { tableOf } from "./table.ts";
import type { CliIo, ExportFile } from "./terminal.ts";

type CostsOptions = RemoteOptions & CostsQuery & { readonly csv?: true };

export function addCosts(program: Command, ports: RemotePorts): void {
  const command = program
    .command("costs")
    .description("fees paid, value moved and the failed share, of the transactions that were created in a range of time");
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

interface ExportOptions extends RemoteOptions {
  readonly format: "jsonl" | "csv";
  readonly to?: string;
  readonly after?: number;
  readonly epoch?: number;
}

/** Number of completions in one request. */
const PAGE = 1_000;

export function addExport(program: Command, ports: RemotePorts): void {
  const command = program
    .command("export")
    .description("write every completion with what it cost, in feed order; run it again to continue");
  onNode<ExportOptions>(command, ports, (client, options) => exportFeed(client, options, ports.io))
    .addOption(new Option("--format <format>", "of a row").choices(["jsonl", "csv"] as const).default("jsonl"))
    .option("--to <file>", "append to this file, and keep the position in <file>.position; by default standard output")
    .option("--after <seq>", "start after this completion, instead of at the position or at the beginning", count)
    .option("--epoch <number>", "refuse a feed of another epoch than this", count);
}

async function exportFeed(client: FencepostClient, options: ExportOptions, io: CliIo) {
  const file = options.to === undefined ? null : await io.openExport(options.to);
  const saved = file === null ? null : positionOf(file, options.to ?? "");
  let after = options.after ?? saved?.after;
  let epoch = options.epoch ?? saved?.epoch;
  let bytes = saved?.bytes ?? 0;
  for (;;) {
    const page = await pageAfter(client, { after, epoch }, io);
    if (page.items.length > 0) {
      const text = rowsOf(options.format, page.items, bytes === 0);
      bytes += Buffer.byteLength(text);
      if (file === null) io.stdout(text);
      else await file.append(text, bytes - Buffer.byteLength(text));
    }
    // Rows first, then the position: after a crash in between, the rows are cut off and written again.
    await file?.mark(`${JSON.stringify({ after: page.next, epoch: page.epoch, bytes })}\n`);
    ({ next: after, epoch } = page);
    if (page.items.length === 0 || io.readerLeft()) break;
  }
  io.stderr(`next: --after ${after} --epoch ${epoch}\n`);
}

/** Without a position, the export begins with the oldest completion that retention has kept. */
async function pageAfter(
  client: FencepostClient,
  { after, epoch }: { readonly after: number | undefined; readonly epoch: number | undefined },
  io: CliIo,
) {
  const query = { limit: PAGE, include: "cost", ...given({ epoch }) } as const;
  try {
    return await client.completionsPage({ ...query, ...given({ after }) });
  } catch (error) {
    const isOver = error instanceof FencepostApiError && error.code === "FEED_TRUNCATED" && after === undefined;
    const first = isOver ? error.resumeAfter : undefined;
    if (first === undefined) throw error;
    io.stderr(`completions up to ${first} are no longer kept: begins after them\n`);
    return client.completionsPage({ ...query, after: first });
  }
}

function positionOf({ position }: ExportFile, path: string) {
  if (position === null) return null;
  try {
    const { after, epoch, bytes } = JSON.parse(position);
    if ([after, epoch, bytes].every((each) => Number.isSafeInteger(each) && each >= 0)) return { after, epoch, bytes };
  } catch {
    // Not JSON: refused below.
  }
  throw misused(`${path}.position is not a position that fencepost export wrote`);
}

const EXPORT_COLUMNS = [
  ...["seq", "epoch", "at", "state", "subState", "settled", "chainId", "signer", "nonce", "txId", "requestId"],
  ...["txHash", "createdAt", "owner", "receiver", "fees", "value"],
] as const;

function rowsOf(format: ExportOptions["format"], items: readonly Completion[], isFirst: boolean) {
  const rows = items.map(({ cost, ...completion }) => ({ ...completion, ...(cost ?? NO_COST) }));
  if (format === "jsonl") return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  return csvOf(EXPORT_COLUMNS, rows, isFirst);
}

/** The transaction was removed by retention before it was exported. */
const NO_COST = { createdAt: null, owner: null, receiver: null, fees: null, value: null };

/** CSV as in RFC 4180, with lines that end in LF. */
function csvOf(columns: readonly string[], rows: readonly object[], withHead = true) {
  const line = (cells: readonly unknown[]) => `${cells.map(csvCell).join(",")}\n`;
  const lines = rows.map((row) => line(columns.map((name) => (row as Record<string, unknown>)[name])));
  return `${withHead ? line(columns) : ""}${lines.join("")}`;
}

function csvCell(value: unknown) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
