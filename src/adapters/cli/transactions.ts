/** `tx`, `explain` and `list`. */
import { type Command, Option } from "commander";
import type {
  FencepostClient,
  Include,
  Transaction,
  TransactionListQuery,
  TransactionPage,
} from "../../client/index.ts";
import { given, print } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { askNode, chainIdOption, count, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { explanationInWords, transactionsTable, wholeTransaction } from "./show-transaction.ts";
import type { Paint } from "./terminal.ts";
import { judgeOutcome, untilFinal, type WaitingOptions, waitingOptions } from "./until-final.ts";

interface Named {
  readonly signer?: string;
  readonly requestId?: string;
  readonly chainId?: number;
}

/** Names of a transaction: its id, a hash of any of its attempts, or the caller's request id. */
function named(command: Command): Command {
  return command
    .argument("[id]", "its id, or the hash of any of its attempts")
    .option("--request-id <id>", "find it by your own id, with --signer")
    .option("--signer <address>", "whose request id that is")
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

export function addTransactions(program: Command, ports: RemotePorts): void {
  const { io } = ports;
  const tx = program.command("tx").description("print a transaction: state, attempts, receipt");
  named(
    onNode<TxOptions>(tx, ports, async (client, options) => {
      let transaction = await find(client, tx.args[0], options);
      const { txId } = transaction;
      if (options.wait === true) transaction = await untilFinal(client, txId, { io, timeout: options.timeout });
      const include = (["history", "confirmations", "logs"] as const).filter((part: Include) => options[part] === true);
      if (include.length > 0) transaction = await client.get(txId, { include });
      const judge = options.wait === true ? { judge: judgeOutcome } : {};
      print(transaction, io, { json: options.json === true, show: wholeTransaction, ...judge });
    }),
  )
    .option("--history", "with every step it took, and who decided it")
    .option("--confirmations", "with the blocks on top of the receipt's")
    .option("--logs", "with its logs and why it reverted, as the chain shows them now");
  for (const option of waitingOptions()) tx.addOption(option);
  const explain = program.command("explain").description("explain why a transaction is not final, and what would help");
  named(
    askNode(explain, ports, {
      ask: async (client) => client.explain((await find(client, explain.args[0], explain.opts<Named>())).txId),
      show: explanationInWords,
    }),
  );
  addList(program.command("list"), ports);
}

interface ListOptions extends TransactionListQuery {
  readonly all?: true;
}

const STATES: readonly NonNullable<TransactionListQuery["state"]>[] = [
  ...(["CREATED", "ALLOCATED", "TRACKING", "CONFIRMED", "FAILED_FINAL", "STUCK"] as const),
];
const LARGEST_PAGE = 1_000;

function addList(command: Command, ports: RemotePorts): void {
  command.description("list transactions, the newest first");
  askNode(command, ports, {
    ask: (client) => {
      const { signer, chainId, state, requestId, txHash, order, after, limit, all } = command.opts<ListOptions>();
      const query = given({ signer, chainId, state, requestId, txHash, order, after, limit });
      return all === true ? everyPage(client, query) : client.list(query);
    },
    show: pageTable,
  })
    .addOption(new Option("--state <state>", "only these").choices(STATES))
    .option("--signer <address>", "only of this signer")
    .option("--request-id <id>", "only with this id of yours")
    .option("--tx-hash <hash>", "only with an attempt of this hash")
    .addOption(new Option("--order <order>", "by age").choices(["newest", "oldest"]))
    .option("--limit <number>", "page size, up to 1000; 50 by default", count)
    .option("--after <cursor>", "the page after this cursor")
    .option("--all", "every page")
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
