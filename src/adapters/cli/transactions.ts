/** `tx`, `explain` and `list`: what is known of transactions. */
import { type Command, Option } from "commander";
import type {
  FencepostClient,
  Include,
  Transaction,
  TransactionListQuery,
  TransactionPage,
} from "../../client/index.ts";
import { given, tell } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { type Asking, askNode, chainIdOption, count, onNode, type RemoteOptions } from "./remote.ts";
import { explanationInWords, transactionsTable, wholeTransaction } from "./show-transaction.ts";
import type { Paint } from "./terminal.ts";
import { judgeOutcome, untilFinal, type WaitingOptions, waitingOptions } from "./until-final.ts";

interface Named {
  readonly signer?: string;
  readonly requestId?: string;
  readonly chainId?: number;
}

/** What a transaction is found by: its id, a hash of any of its attempts, or the caller's own id. */
function named(command: Command): Command {
  return command
    .argument("[id]", "its id, or the hash of any of its attempts")
    .addOption(new Option("--request-id <id>", "find it by your own id, with --signer"))
    .addOption(new Option("--signer <address>", "whose request id that is"))
    .addOption(chainIdOption());
}

const HASH = /^0x[0-9a-f]{64}$/i;

async function find(
  client: FencepostClient,
  id: string | undefined,
  { signer, requestId, chainId }: Named,
): Promise<Transaction> {
  if (id === undefined) {
    if (requestId !== undefined && signer !== undefined) {
      return client.getByRequest({ signer, requestId, ...given({ chainId }) });
    }
    throw new CommandFailed(["name a transaction: its id, a hash, or --request-id and --signer"], EXIT_CODES.misused);
  }
  if (!HASH.test(id)) return client.get(id);
  const [found] = (await client.list({ txHash: id, limit: 1 })).items;
  if (found !== undefined) return found;
  throw new CommandFailed([`no transaction has an attempt with the hash ${id}`], EXIT_CODES.refused);
}

type TxOptions = RemoteOptions & Named & WaitingOptions & { readonly [Part in Include]?: true };

export function addTransactions(program: Command, asking: Asking): void {
  const { io } = asking;
  const tx = program.command("tx").description("print a transaction: state, attempts, receipt");
  named(
    onNode<TxOptions>(tx, asking, async (client, options) => {
      let transaction = await find(client, tx.args[0], options);
      const { txId } = transaction;
      if (options.wait === true) transaction = await untilFinal(client, txId, { io, timeout: options.timeout });
      const include = (["history", "confirmations", "logs"] as const).filter((part: Include) => options[part] === true);
      if (include.length > 0) transaction = await client.get(txId, { include });
      const judge = options.wait === true ? { judge: judgeOutcome } : {};
      tell(transaction, io, { json: options.json === true, show: wholeTransaction, ...judge });
    }),
  )
    .addOption(new Option("--history", "with every step it took, and who decided it"))
    .addOption(new Option("--confirmations", "with the blocks on top of the receipt's"))
    .addOption(new Option("--logs", "with its logs and why it reverted, as the chain shows them now"));
  for (const option of waitingOptions()) tx.addOption(option);
  const explain = program
    .command("explain")
    .description("say in words why a transaction is not final, and what would help");
  named(
    askNode(explain, asking, {
      ask: async (client) => client.explain((await find(client, explain.args[0], explain.opts<Named>())).txId),
      show: explanationInWords,
    }),
  );
  addList(program.command("list"), asking);
}

interface ListOptions extends TransactionListQuery {
  readonly all?: true;
}

const STATES: readonly NonNullable<TransactionListQuery["state"]>[] = [
  ...(["CREATED", "ALLOCATED", "TRACKING", "CONFIRMED", "FAILED_FINAL", "STUCK"] as const),
];
const LARGEST_PAGE = 1_000;

function addList(command: Command, asking: Asking): void {
  command.description("list transactions, the newest first");
  askNode(command, asking, {
    ask: (client) => {
      const { signer, chainId, state, requestId, txHash, order, after, limit, all } = command.opts<ListOptions>();
      const query = given({ signer, chainId, state, requestId, txHash, order, after, limit });
      return all === true ? everyPage(client, query) : client.list(query);
    },
    show: pageTable,
  })
    .addOption(new Option("--state <state>", "only these").choices(STATES))
    .addOption(new Option("--signer <address>", "only of this signer"))
    .addOption(new Option("--request-id <id>", "only with this id of yours"))
    .addOption(new Option("--tx-hash <hash>", "only with an attempt of this hash"))
    .addOption(new Option("--order <order>", "by age").choices(["newest", "oldest"]))
    .addOption(new Option("--limit <number>", "so many at once, up to 1000; 50 by default").argParser(count))
    .addOption(new Option("--after <cursor>", "the page behind this one"))
    .addOption(new Option("--all", "every page"))
    .addOption(chainIdOption());
}

async function everyPage(client: FencepostClient, query: TransactionListQuery): Promise<TransactionPage> {
  const items: Transaction[] = [];
  for (let after: string | null | undefined = query.after; after !== null; ) {
    const page: TransactionPage = await client.list({ limit: LARGEST_PAGE, ...query, ...given({ after }) });
    items.push(...page.items);
    after = page.next;
  }
  return { items, next: null };
}

function pageTable({ items, next }: TransactionPage, paint: Paint): string {
  if (items.length === 0) return "there is no such transaction\n";
  const more = next === null ? "" : `more: --after ${next}\n`;
  return `${transactionsTable(items, paint)}${more}`;
}
