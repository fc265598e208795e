/** The commands `tx`, `explain` and `list`. */
import { type Command, Option } from "commander";
import type {
  FencepostClient,
  Hash,
  Include,
  Transaction,
  TransactionListQuery,
  TransactionPage,
} from "../../client/index.ts";
import { during, given, print } from "./answer.ts";
import { CommandFailed, EXIT_CODES, misused } from "./failure.ts";
import { askNode, CHAIN_ID, count, instant, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { explanationInWords, transactionsTable, wholeTransaction } from "./show-transaction.ts";
import type { CliIo } from "./terminal.ts";
import { judgeOutcome, untilFinal, WAITING, type WaitingOptions } from "./until-final.ts";

type Named = Pick<TransactionListQuery, "signer" | "requestId" | "chainId">;

/** Adds the argument that names a transaction: its id, the hash of any attempt, or the caller's request id. */
function named(command: Command) {
  return command
    .argument("[id]", "its id, or the hash of any of its attempts")
    .option("--request-id <id>", "find it by your own id, with --signer")
    .option("--signer <address>", "whose request id that is")
    .addOption(CHAIN_ID);
}

const isHash = (id: string): id is Hash => /^0x[0-9a-f]{64}$/i.test(id);

async function find(
  client: FencepostClient,
  { signer, requestId, chainId }: Named,
  id: string | undefined,
): Promise<Transaction> {
  if (id === undefined) {
    if (requestId !== undefined && signer !== undefined) {
      return client.getByRequest({ signer, requestId, ...given({ chainId }) });
    }
    throw misused("name a transaction: its id, a hash, or --request-id and --signer");
  }
  if (!isHash(id)) return client.get(id);
  const [found] = (await client.list({ txHash: id, limit: 1 })).items;
  if (found !== undefined) return found;
  throw new CommandFailed([`no transaction has an attempt with the hash ${id}`], EXIT_CODES.refused);
}

type TxOptions = RemoteOptions & Named & WaitingOptions & { readonly [Part in Include]?: true };

export function addTransactions(program: Command, ports: RemotePorts): void {
  const { io } = ports;
  const tx = program.command("tx").description("print a transaction: state, attempts, receipt");
  named(
    onNode<TxOptions>(tx, ports, async (client, options) => {
      const finding = () => find(client, options, tx.args[0]);
      let transaction = await during(io, "waiting for the node", finding);
      const { txId } = transaction;
      if (options.wait === true) transaction = await untilFinal(client, txId, io, options);
      const include = (["history", "confirmations", "logs"] as const).filter((part) => options[part]);
      if (include.length > 0) transaction = await client.get(txId, { include });
      print(transaction, io, { ...options, show: wholeTransaction, ...(options.wait && { judge: judgeOutcome }) });
    }),
  )
    .option("--history", "with every step it took, and who decided it")
    .option("--confirmations", "with the blocks on top of the receipt's")
    .option("--logs", "with its logs and why it reverted, as the chain shows them now");
  for (const option of WAITING) tx.addOption(option);
  const explain = program.command("explain").description("explain why a transaction is not final, and what would help");
  named(
    askNode(explain, ports, {
      ask: async (client, options: Named, id?: string) => client.explain((await find(client, options, id)).txId),
      show: explanationInWords,
    }),
  );
  addList(program.command("list"), ports);
}

const STATES = ["CREATED", "ALLOCATED", "TRACKING", "CONFIRMED", "FAILED_FINAL", "STUCK"];
const LARGEST_PAGE = 1_000;

function addList(command: Command, ports: RemotePorts) {
  command.description("list transactions, the newest first");
  askNode(command, ports, {
    ask: (client, { all, ...query }: TransactionListQuery & { readonly all?: true }) =>
      all ? everyPage(client, query, ports.io) : client.list(query),
    show: (page, view) => `${transactionsTable(page, view)}${page.next === null ? "" : `more: --after ${page.next}\n`}`,
  })
    .addOption(new Option("--state <state>", "only these").choices(STATES))
    .option("--signer <address>", "only of this signer")
    .option("--request-id <id>", "only with this id of yours")
    .option("--tx-hash <hash>", "only with an attempt of this hash")
    .option("--created-after <time>", "only those created at this day (UTC) or instant, or later", instant)
    .option("--created-before <time>", "only those created before this day (UTC) or instant", instant)
    .addOption(new Option("--order <order>", "by age").choices(["newest", "oldest"]))
    .option("--limit <number>", "page size, up to 1000; 50 by default", count)
    .option("--after <cursor>", "the page after this cursor")
    .option("--all", "every page")
    .addOption(CHAIN_ID);
}

function everyPage(client: FencepostClient, query: TransactionListQuery, io: CliIo): Promise<TransactionPage> {
  return during(io, "waiting for the node", async (busy) => {
    const items: Transaction[] = [];
    for (let after: string | null | undefined = query.after; after !== null; ) {
      const page: TransactionPage = await client.list({ limit: LARGEST_PAGE, ...query, ...given({ after }) });
      items.push(...page.items);
      busy.update(`${items.length} transactions read`);
      after = page.next;
    }
    return { items, next: null };
  });
}
