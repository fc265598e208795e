/** `fencepost send`: sends one transaction, or all transactions of a file. */
import type { Command } from "commander";
import {
  type BatchResults,
  type CreatedTransaction,
  type CreateTransaction,
  FencepostApiError,
  type FencepostClient,
  type Transaction,
} from "../../client/index.ts";
import { during, print } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { addIntent, type IntentOptions, intentsOf } from "./intent.ts";
import { isUnanswered, onNode, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { indented, inert } from "./shorten.ts";
import { wholeTransaction } from "./show-transaction.ts";
import { type CliIo, type View, viewOn } from "./terminal.ts";
import { isUnsent } from "./unreachable.ts";
import { judgeOutcome, untilFinal, WAITING, type WaitingOptions } from "./until-final.ts";

type SendOptions = RemoteOptions & IntentOptions & WaitingOptions;

export function addSend(program: Command, ports: RemotePorts): void {
  const command = program
    .command("send")
    .description("send a transaction: a transfer, a call by its signature, a deployment, or the content of a file");
  addIntent(
    onNode<SendOptions>(command, ports, async (client, options) => {
      const { io } = ports;
      const intents = (await intentsOf(command.args, options, io.read)).map((intent) => withRequestId(intent, io));
      const [first] = intents;
      if (intents.length === 1 && first !== undefined) return sendOne(client, first, io, options);
      await sendMany(client, intents, io, options);
    }),
  );
  for (const option of WAITING) command.addOption(option);
}

type Named = CreateTransaction & { readonly requestId: string };

/** The request id is set before sending, so that a request without an answer can be repeated safely. */
function withRequestId(intent: CreateTransaction, io: CliIo): Named {
  return { ...intent, requestId: intent.requestId ?? `cli-${io.newId()}` };
}

async function sendOne(client: FencepostClient, intent: Named, io: CliIo, options: SendOptions) {
  const sending = () => client.send(intent).catch((error: unknown) => explainRepeat(error, intent.requestId));
  const created = await during(io, "waiting for the node", sending);
  if (!options.wait) return print<CreatedTransaction>(created, io, { ...options, show: acceptedLines });
  if (!options.json) io.stderr(`${indented("", acceptedLine(created), viewOn(io, options))}\n`);
  const transaction = await untilFinal(client, created.txId, io, options);
  print(transaction, io, { ...options, show: wholeTransaction, judge: judgeOutcome });
}

/** If no node answered, the request may have been accepted: print how to repeat it safely. */
function explainRepeat(error: unknown, requestId: string): never {
  if (!(error instanceof FencepostApiError)) throw error;
  const isUnknown = (isUnanswered(error) && !isUnsent(error)) || error.problem?.outcome === "unknown";
  if (!isUnknown) throw error;
  const code = isUnanswered(error) ? EXIT_CODES.notReached : EXIT_CODES.failed;
  const how = `it may have been accepted; repeat it with --request-id ${requestId}, and it is sent once`;
  throw new CommandFailed([`${error.detail}: ${how}`], code, { cause: error });
}

function acceptedLine({ txId, nonce, chainId, signer, state, requestId }: CreatedTransaction) {
  const given = nonce === null ? "no nonce yet" : `nonce ${nonce}`;
  return `accepted: transaction ${txId} (${given} of ${signer} on chain ${chainId}) is ${state}, request id ${inert(requestId ?? "-")}`;
}

function acceptedLines(created: CreatedTransaction, view: View) {
  return `${indented("", acceptedLine(created), view)}\nfollow it: fencepost tx ${created.txId} --wait${view.reach}\n`;
}

const MOST_AT_ONCE = 1_000;

async function sendMany(
  client: FencepostClient,
  intents: readonly CreateTransaction[],
  io: CliIo,
  options: SendOptions,
) {
  const results: BatchResults["results"] = [];
  await during(io, `sending ${intents.length} transactions`, async (busy) => {
    for (let from = 0; from < intents.length; from += MOST_AT_ONCE) {
      results.push(...(await client.sendBatch(intents.slice(from, from + MOST_AT_ONCE))));
      busy.update(`${results.length} of ${intents.length} transactions answered`);
    }
  });
  if (!options.wait) return print({ results }, io, { ...options, show: resultLines, judge: judgeAll });
  const settled: (Transaction | BatchResults["results"][number])[] = [];
  for (const result of results) {
    settled.push("code" in result ? result : await untilFinal(client, result.txId, io, options));
  }
  const judge = () => {
    judgeAll({ results });
    for (const each of settled) if ("attempts" in each) judgeOutcome(each);
  };
  print({ results: settled }, io, { ...options, show: (_, view) => resultLines({ results }, view), judge });
}

function resultLines({ results }: BatchResults, view: View) {
  const lines = results.map((result, at) =>
    "code" in result ? `refused: item ${at + 1}: ${result.code}: ${inert(result.detail)}` : acceptedLine(result),
  );
  return lines.map((line) => `${indented("", line, view)}\n`).join("");
}

function judgeAll({ results }: BatchResults) {
  const refused = results.filter((result) => "code" in result).length;
  if (refused === 0) return;
  throw new CommandFailed(
    [`${refused} of ${results.length} were refused; the others are accepted`],
    EXIT_CODES.refused,
  );
}
