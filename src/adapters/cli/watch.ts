/**
 * `fencepost watch`: shows live all transactions that are not final. On a terminal a table is redrawn; otherwise each
 * change is printed as a line.
 */
import { type Command, Option } from "commander";
import type { Address, FencepostClient, Transaction } from "../../client/index.ts";
import { given } from "./answer.ts";
import { duration, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { changeLine, coloured, short, statusOf } from "./show-transaction.ts";
import { listing } from "./table.ts";
import { CLEARED, type CliIo, type Paint, painterFor, plainly, redrawn, type Screen } from "./terminal.ts";

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
  for (;;) {
    await show(await openTransactions(client, options.signer));
    if (options.once || io.readerLeft()) return;
    await io.sleep(options.interval);
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
    const paint = painterFor(screen);
    const whose = signer === undefined ? "" : ` of ${signer}`;
    const title = `${open.length} not final${whose}, ${io.now().toISOString()}  (Ctrl-C ends this)\n\n`;
    io.stdout(redrawn(`${paint("bold", title)}${fitted(open, io, { screen, paint })}`));
  };
}

/** Number of screen lines used by the title, blank lines, headings and the cursor. */
const LINES_AROUND = 5;

function fitted(open: readonly Transaction[], io: CliIo, { screen, paint }: { screen: Screen; paint: Paint }) {
  if (open.length === 0) return NOTHING;
  const height = Math.max(1, screen.rows - LINES_AROUND);
  const hidden = open.length - height;
  const shown = open.slice(0, height);
  const [heads = "", ...lines] = openTable(shown, io).trimEnd().split("\n");
  // Cut each line before it is coloured: a line that wraps would push the others off the screen.
  const cut = (line: string) => line.slice(0, screen.columns);
  const rows = lines.map((line, at) => {
    const status = statusOf(shown[at] as Transaction);
    return cut(line).replace(status, () => coloured(paint, status));
  });
  return `${[paint("bold", cut(heads)), ...rows].join("\n")}\n${hidden > 0 ? `… and ${hidden} more\n` : ""}`;
}

function openTable(open: readonly Transaction[], io: CliIo) {
  return listing(open, plainly, {
    age: (each) => age(each, io),
    state: statusOf,
    chain: "chainId",
    signer: ({ signer }) => short(signer),
    nonce: "nonce",
    attempts: ({ attempts }) => attempts.length,
    hash: ({ txHash }) => short(txHash),
    transaction: "txId",
    "request id": ({ requestId }) => requestId?.slice(0, 24),
  });
}

function age({ createdAt }: Transaction, io: CliIo) {
  const seconds = Math.max(0, Math.round((io.now().getTime() - new Date(createdAt).getTime()) / 1_000));
  if (seconds < 120) return `${seconds}s`;
  return seconds < 7_200 ? `${Math.floor(seconds / 60)}m` : `${Math.floor(seconds / 3_600)}h`;
}

/**
 * Prints each change of a transaction as a line. A transaction that is no longer in the list of open ones is final, so
 * its outcome is fetched.
 */
function printChanges(client: FencepostClient, options: WatchOptions, io: CliIo): Show {
  let known = new Map<string, string>();
  const paint = painterFor(io.screen());
  const print = (each: Transaction) =>
    io.stdout(options.json ? `${JSON.stringify(each)}\n` : changeLine(each, each.updatedAt, paint));
  return async (open) => {
    const seen = new Map(open.map((each) => [each.txId, `${statusOf(each)} ${each.txHash} ${each.submitAttempts}`]));
    for (const each of open) if (known.get(each.txId) !== seen.get(each.txId)) print(each);
    const gone = [...known.keys()].filter((txId) => !seen.has(txId));
    for (const txId of gone) print(await client.get(txId));
    if (known.size + seen.size === 0 && options.once && !options.json) io.stdout(NOTHING);
    known = seen;
  };
}
