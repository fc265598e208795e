/** `fencepost completions` and `fencepost export`: the feed of completions, printed or written to a file. */
import { type Command, Option } from "commander";
import {
  type Completion,
  type CompletionsPage,
  type CompletionsQuery,
  FencepostApiError,
  type FencepostClient,
} from "../../client/index.ts";
import { during, given, print } from "./answer.ts";
import { misused } from "./failure.ts";
import { count, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { changeLine, colourOf, statusOf } from "./show-transaction.ts";
import { csvOf, id, listing, spare, time } from "./table.ts";
import { type CliIo, type ExportFile, type View, viewOn } from "./terminal.ts";

type FeedOptions = RemoteOptions & Omit<CompletionsQuery, "wait"> & { readonly follow?: true };

export function addCompletions(program: Command, ports: RemotePorts): void {
  const command = program
    .command("completions")
    .description("print the feed of outcomes in order, from the beginning or after a given one");
  onNode<FeedOptions>(command, ports, (client, options) =>
    (options.follow ? follow : printPage)(client, options, ports.io),
  )
    .option("--after <seq>", "start after this one", count)
    .option("--epoch <number>", "refuse a feed of another epoch than this", count)
    .option("--limit <number>", "page size, up to 1000", count)
    .option("--follow", "follow it, one line each; Ctrl-C ends it");
}

async function printPage(client: FencepostClient, options: FeedOptions, io: CliIo) {
  const { after, epoch, limit } = options;
  const reading = () => client.completionsPage(given({ after, epoch, limit }));
  const page = await during(io, "waiting for the node", reading);
  print(page, io, { ...options, show: pageTable });
}

const COLUMNS = {
  seq: "seq",
  at: time<Completion>("at"),
  state: statusOf,
  chain: spare<Completion>("chainId", 1),
  signer: id<Completion>("signer"),
  nonce: "nonce",
  transaction: id<Completion>("txId"),
  "request id": id<Completion>("requestId"),
} as const;

function pageTable({ items, next, epoch, filtered }: CompletionsPage, view: View) {
  if (items.length === 0) return `nothing after ${next} (epoch ${epoch})\n`;
  const others = filtered === true ? "; the gaps are of signers that this key may not see" : "";
  return `${listing(items, view, COLUMNS, colourOf)}next: --after ${next} --epoch ${epoch}${others}\n`;
}

async function follow(client: FencepostClient, options: FeedOptions, io: CliIo) {
  const view = viewOn(io, options);
  const { after, epoch } = options;
  const outcomes = client.outcomes(given({ after, epoch }), { signal: io.whenReaderLeft });
  while (!io.readerLeft()) {
    const next = during(io, "waiting for the next outcome", () => outcomes.next());
    const { value: item, done } = await next.catch(endIf(io.whenReaderLeft));
    if (done) break;
    io.stdout(options.json ? `${JSON.stringify(item)}\n` : changeLine(item, item.at, view, `${item.seq}  `));
  }
  await outcomes.return();
}

/** Nobody reads the output any more: that ends the command, and is no error. */
function endIf(left: AbortSignal) {
  return (error: unknown): IteratorReturnResult<void> => {
    if (left.aborted) return { done: true, value: undefined };
    throw error;
  };
}

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
  try {
    await exportTo(file, client, options, io);
  } finally {
    await file?.close();
  }
}

async function exportTo(file: ExportFile | null, client: FencepostClient, options: ExportOptions, io: CliIo) {
  const saved = file === null ? null : positionOf(file, options.to ?? "");
  let after = options.after ?? saved?.after;
  let epoch = options.epoch ?? saved?.epoch;
  let bytes = saved?.bytes ?? 0;
  let rows = 0;
  await during(io, "waiting for the node", async (busy) => {
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
      if (page.items.length === 0 || io.readerLeft()) return;
      rows += page.items.length;
      busy.update(`${rows} completions exported`);
    }
  });
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
