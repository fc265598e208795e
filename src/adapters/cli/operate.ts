/** An operator's actions on one transaction. */
import { type Command, Option } from "commander";
import type {
  FencepostClient,
  OrderOptions,
  PricedOrder,
  ReplaceOrder,
  ResolveOrder,
  ResubmitOrder,
} from "../../client/index.ts";
import { wei } from "./amounts.ts";
import { given } from "./answer.ts";
import { askNode, count, json, type RemoteOptions, type RemotePorts } from "./remote.ts";
import { actionReport } from "./show-transaction.ts";

const amount = (flag: string, what: string) =>
  new Option(`${flag} <amount>`, `${what}: wei, or as in 20gwei`).argParser(wei);
export const feeOptions = (): readonly Option[] => [
  amount("--max-fee-per-gas", "fee cap"),
  amount("--max-priority-fee-per-gas", "tip"),
  amount("--gas-price", "price of a legacy transaction"),
];

export const reasonOption = (): Option =>
  new Option("--reason <text>", "why; kept in the history").makeOptionMandatory();
export const keyOption = (): Option =>
  new Option("--idempotency-key <key>", "your own name of the action: repeated with it, it is performed once");
const payloadOption = (): Option =>
  new Option("--payload <json>", 'as in POST /tx: {"to":"0x…","value":"1"}').argParser(json);
const auditOption = (): Option =>
  new Option("--audit <json>", "an object that is kept beside the decision").argParser(json);

type Operation = "cancel" | "replace" | "resubmit" | "reprice" | "approve" | "reject" | "resolve" | "hold" | "unhold";

export function addOperating(program: Command, ports: RemotePorts): void {
  const add = (command: Command, description: string, options: readonly Option[] = []) =>
    addOperation(command.description(description), options, ports);
  const cancelling = "use a transaction's nonce up with nothing; whichever payload is mined decides";
  const repricing = "sign a transaction's payload again for more: the market's price, or the one given";
  add(program.command("cancel"), cancelling, feeOptions());
  add(program.command("replace"), "put another payload at a transaction's nonce", [
    payloadOption().makeOptionMandatory(),
  ]);
  add(program.command("resubmit"), "send a transaction's stored bytes again, now", [
    new Option("--disclose", "to public endpoints too, if it was private so far; it stays public"),
  ]);
  add(program.command("reprice"), repricing, feeOptions());
  add(program.command("resolve"), "ask the hook about a stuck transaction now, or apply the action given", [
    new Option("--action <what>", "without it, the hook decides").choices(["NOOP", "CANCEL", "REPLACE", "PLACEHOLDER"]),
    new Option("--then <what>", "what it is afterwards").choices(["track", "stuck", "manual"]),
    new Option("--nonce <number>", "with PLACEHOLDER: refuse if another nonce is to be filled now").argParser(count),
    payloadOption(),
    new Option("--raw-transaction <hex>", "signed bytes for REPLACE, instead of a payload"),
    ...feeOptions(),
  ]);
  add(program.command("approve"), "approve a transaction that waits for approval; requires a second API key");
  add(program.command("reject"), "reject a transaction that waits for approval; requires a second API key");
  add(program.command("hold"), "stop sending one transaction until it is released; those after it wait");
  add(program.command("unhold"), "release a held transaction");
}

type ActionFlags = RemoteOptions &
  OrderOptions &
  Partial<PricedOrder & ReplaceOrder & ResolveOrder & ResubmitOrder> & { readonly reason: string };

/** The options of the command are the request. */
function addOperation(command: Command, options: readonly Option[], ports: RemotePorts): void {
  const action = command.name() as Operation;
  askNode(command, ports, {
    ask: (client) => {
      const { url: _, apiKey: __, profile: ___, idempotencyKey, ...request } = command.opts<ActionFlags>();
      return act(client, action, { txId: command.args[0] ?? "", request, options: given({ idempotencyKey }) });
    },
    show: (transaction, paint) => actionReport(action, transaction, paint),
  })
    .argument("<txId>", "its id")
    .addOption(reasonOption())
    .addOption(auditOption())
    .addOption(keyOption());
  for (const option of options) command.addOption(option);
}

interface ActionRequest {
  readonly txId: string;
  readonly request: Omit<ActionFlags, keyof RemoteOptions | keyof OrderOptions>;
  readonly options: OrderOptions;
}

function act(client: FencepostClient, action: Operation, { txId, request, options }: ActionRequest) {
  if (action === "hold") return client.suspendTransaction(txId, request, options);
  if (action === "unhold") return client.resumeTransaction(txId, request, options);
  if (action !== "resolve") return client[action](txId, request as typeof request & ReplaceOrder, options);
  const { maxFeePerGas, maxPriorityFeePerGas, gasPrice, ...rest } = request;
  const fees = given({ maxFeePerGas, maxPriorityFeePerGas, gasPrice });
  return client.resolve(txId, { ...rest, ...(Object.keys(fees).length > 0 && { fees }) }, options);
}
