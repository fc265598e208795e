/** `fencepost completions`: prints the feed of completions, one page or endlessly. */
import type { Command } from "commander";
import type { Completion, CompletionsPage, CompletionsQuery, FencepostClient } from "../../client/index.ts";
import { during, given, print } from "./answer.ts";
import { count, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { changeLine, colourOf, statusOf } from "./show-transaction.ts";
import { id, listing, spare, time } from "./table.ts";
import { type CliIo, type View, viewOn } from "./terminal.ts";

type FeedOptions = RemoteOptions & Omit<CompletionsQuery, "wait"> & { readonly follow?: true };

/**
 * How long one request waits for new completions, in seconds. Below a node's limit of 30 s and the timeout of most
 * proxies.
 */
const WAIT_SECONDS = 20;

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
  const { limit } = options;
  let { after, epoch } = options;
  while (!io.readerLeft()) {
    const query = { wait: WAIT_SECONDS, ...given({ after, epoch, limit }) };
    const page = await during(io, "waiting for the next outcome", () => client.completionsPage(query));
    for (const item of page.items) {
      io.stdout(
        options.json
          ? `${JSON.stringify({ ...item, feedEpoch: page.epoch })}\n`
          : changeLine(item, item.at, view, `${item.seq}  `),
      );
    }
    ({ epoch, next: after } = page);
  }
}
