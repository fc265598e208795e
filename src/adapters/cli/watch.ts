/**
 * `fencepost watch`: shows live all transactions that are not final. On a terminal a table is redrawn; otherwise each
 * change is printed as a line.
 */
import { type Command, Option } from "commander";
import type { Address, FencepostClient, Transaction } from "../../client/index.ts";
import { during, given } from "./answer.ts";
import { duration, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { cut } from "./shorten.ts";
import { changeLine, colourOf, statusOf } from "./show-transaction.ts";
import { id, listing, spare, time } from "./table.ts";
import { CLEARED, type CliIo, redrawn, type View, viewOn } from "./terminal.ts";

interface WatchOptions extends RemoteOptions {
  readonly signer?: Address;
  /** Time between two polls, in milliseconds. */
  readonly interval: number;
  readonly once?: true;
}

const OPEN_STATES = ["STUCK", "TRACKING", "ALLOCATED", "CREATED"] as const;
const MOST_OF_A_STATE = 200;
const DEFAULT_INTERVAL_MS = 1_000;
const NOTHING = "nothing: everything is final\n";

export function addWatch(program: Command, ports: RemotePorts): void {
  const command = program.command("watch").description("show what is not final, live; Ctrl-C ends it");
  onNode<WatchOptions>(command, ports, (client, options) => watch(client, options, ports.io))
    .option("--signer <address>", "only of this signer")
    .addOption(
      new Option("--interval <duration>", "how often to look").argParser(duration).default(DEFAULT_INTERVAL_MS, "1s"),
    )
    .option("--once", "show it once, and end");
}

async function watch(client: FencepostClient, options: WatchOptions, io: CliIo) {
  const screen = io.screen();
  const isLive = screen !== null && !options.json && !options.once;
  const show = isLive ? drawTable(io, options) : printChanges(client, options, io);
  const look = () => openTransactions(client, options.signer);
  let open = await during(io, "waiting for the node", look);
  for (;;) {
    await show(open);
    if (options.once || io.readerLeft()) return;
    await io.sleep(options.interval);
    open = await look();
  }
}

/** Reads the oldest transactions of each open state, because they have waited longest. */
async function openTransactions(client: FencepostClient, signer: Address | undefined): Promise<readonly Transaction[]> {
  const pages = OPEN_STATES.map((state) =>
    client.list({ state, order: "oldest", limit: MOST_OF_A_STATE, ...given({ signer }) }),
  );
  return (await Promise.all(pages)).flatMap(({ items }) => items);
}

type Show = (open: readonly Transaction[]) => void | Promise<void>;

function drawTable(io: CliIo, { signer }: WatchOptions): Show {
  io.stdout(CLEARED);
  return (open) => {
    const screen = io.screen();
    if (screen === null) return;
    // The table is redrawn, so it is cut even with --wide: a line that wraps would push the others off the screen.
    const view = viewOn(io, {});
    const whose = signer === undefined ? "" : ` of ${signer}`;
    const title = cut(
      `${open.length} not final${whose}, ${io.now().toISOString()}  (Ctrl-C ends this)`,
      screen.columns,
    );
    io.stdout(redrawn(`${view.paint("bold", title)}\n\n${fitted(open, view, screen.rows)}`));
  };
}

/** Number of screen lines used by the title, blank lines, headings and the cursor. */
const LINES_AROUND = 5;

function fitted(open: readonly Transaction[], view: View, rows: number) {
  if (open.length === 0) return NOTHING;
  const height = Math.max(1, rows - LINES_AROUND);
  const hidden = open.length - height;
  const shown = listing(open.slice(0, height), view, COLUMNS, colourOf);
  return `${shown}${hidden > 0 ? `… and ${hidden} more\n` : ""}`;
}

const COLUMNS = {
  created: time<Transaction>("createdAt"),
  state: statusOf,
  chain: spare<Transaction>("chainId", 2),
  signer: id<Transaction>("signer"),
  nonce: "nonce",
  attempts: spare(({ attempts }: Transaction) => attempts.length, 3),
  hash: id<Transaction>("txHash", 4),
  transaction: id<Transaction>("txId"),
  "request id": id<Transaction>("requestId", 1),
} as const;

/**
 * Prints each change of a transaction as a line. A transaction that is no longer in the list of open ones is final, so
 * its outcome is fetched.
 */
function printChanges(client: FencepostClient, options: WatchOptions, io: CliIo): Show {
  let known = new Map<string, string>();
  const view = viewOn(io, options);
  const print = (each: Transaction) =>
    io.stdout(options.json ? `${JSON.stringify(each)}\n` : changeLine(each, each.updatedAt, view));
  return async (open) => {
    const seen = new Map(open.map((each) => [each.txId, `${statusOf(each)} ${each.txHash} ${each.submitAttempts}`]));
    for (const each of open) if (known.get(each.txId) !== seen.get(each.txId)) print(each);
    const gone = [...known.keys()].filter((txId) => !seen.has(txId));
    for (const txId of gone) print(await client.get(txId));
    if (known.size + seen.size === 0 && options.once && !options.json) io.stdout(NOTHING);
    known = seen;
  };
}
