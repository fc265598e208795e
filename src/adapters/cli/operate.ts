/** Commands for an operator's actions on one transaction. */
import { type Command, Option } from "commander";
import type {
  FencepostClient,
  OrderOptions,
  PricedOrder,
  ReplaceOrder,
  ResolveOrder,
  ResubmitOrder,
  Transaction,
} from "../../client/index.ts";
import { wei } from "./amounts.ts";
import { given } from "./answer.ts";
import { misused } from "./failure.ts";
import { askNode, count, json, type RemotePorts } from "./remote.ts";
import { actionReport } from "./show-transaction.ts";

const amount = (flag: string, what: string) =>
  new Option(`${flag} <amount>`, `${what}: wei, or as in 20gwei`).argParser(wei);
export const FEES: readonly Option[] = [
  amount("--max-fee-per-gas", "fee cap"),
  amount("--max-priority-fee-per-gas", "tip"),
  amount("--gas-price", "price of a legacy transaction"),
];

export const REASON = new Option("--reason <text>", "why; kept in the history").makeOptionMandatory();
export const IDEMPOTENCY_KEY = new Option(
  "--idempotency-key <key>",
  "your own name of the action: repeated with it, it is performed once",
);
const AUDIT = new Option("--audit <json>", "an object that is kept beside the decision").argParser(json);
const payload = () =>
  new Option("--payload <json>", 'as in POST /tx, such as {"to":"0x…","value":"1"}').argParser(json);

type Operation = "cancel" | "replace" | "resubmit" | "reprice" | "approve" | "reject" | "resolve" | "hold" | "unhold";
/** The payload of `replace` by its parts, as `send` has them. */
type Parts = { readonly [Name in "to" | "value" | "data"]?: string };
type Request = Parts & Partial<PricedOrder & ReplaceOrder & ResolveOrder & ResubmitOrder> & { readonly reason: string };

export function addOperating(program: Command, ports: RemotePorts): void {
  /** Adds one command. Its options become the body of the request. */
  const add = (command: Command, description: string, options: readonly Option[] = []) => {
    const name = command.name() as Operation;
    askNode(command.description(description), ports, {
      ask: (client, { idempotencyKey, ...request }: Request & OrderOptions, txId) =>
        act(client, name)(txId, request as Request & ReplaceOrder, given({ idempotencyKey })),
      show: (transaction, view) => actionReport(name, transaction, view),
    }).argument("<txId>", "its id");
    for (const option of [REASON, AUDIT, IDEMPOTENCY_KEY, ...options]) command.addOption(option);
  };
  add(program.command("cancel"), "use a transaction's nonce up with nothing; whichever payload is mined decides", FEES);
  add(program.command("replace"), "put another payload at a transaction's nonce", [
    new Option("--to <address>", "its receiver"),
    amount("--value", "what it moves"),
    new Option("--data <hex>", "an encoded call"),
    payload(),
  ]);
  add(program.command("resubmit"), "send a transaction's stored bytes again, now", [
    new Option("--disclose", "to public endpoints too, if it was private so far; it stays public"),
  ]);
  add(
    program.command("reprice"),
    "sign a transaction's payload again for more: the market's price, or the one given",
    FEES,
  );
  add(program.command("resolve"), "ask the hook about a stuck transaction now, or apply the action given", [
    new Option("--action <what>", "without it, the hook decides").choices(["NOOP", "CANCEL", "REPLACE", "PLACEHOLDER"]),
    new Option("--then <what>", "what it is afterwards").choices(["track", "stuck", "manual"]),
    new Option("--nonce <number>", "with PLACEHOLDER: refuse if another nonce is to be filled now").argParser(count),
    payload(),
    new Option("--raw-transaction <hex>", "signed bytes for REPLACE, instead of a payload"),
    ...FEES,
  ]);
  add(program.command("approve"), "approve a transaction that waits for approval; requires a second API key");
  add(program.command("reject"), "reject a transaction that waits for approval; requires a second API key");
  add(program.command("hold"), "stop sending one transaction until it is released; those after it wait");
  add(program.command("unhold"), "release a held transaction");
}

type Act = (txId: string, request: Request & ReplaceOrder, options: OrderOptions) => Promise<Transaction>;

function act(client: FencepostClient, name: Operation): Act {
  if (name === "hold") return client.suspendTransaction;
  if (name === "unhold") return client.resumeTransaction;
  if (name === "replace") return async (txId, request, options) => client.replace(txId, payloadOf(request), options);
  if (name !== "resolve") return client[name];
  return (txId, { maxFeePerGas, maxPriorityFeePerGas, gasPrice, ...rest }, options) => {
    const fees = given({ maxFeePerGas, maxPriorityFeePerGas, gasPrice });
    return client.resolve(txId, { ...rest, ...(Object.keys(fees).length > 0 && { fees }) }, options);
  };
}

function payloadOf({ to, value, data, ...order }: Request & ReplaceOrder): ReplaceOrder {
  const hasParts = to !== undefined || value !== undefined || data !== undefined;
  if (order.payload !== undefined) {
    if (hasParts) throw misused("--payload is the whole of it: give no --to, --value or --data beside it");
    return order;
  }
  if (to === undefined) throw misused("--to is missing: the receiver, or --payload with the whole of it as JSON");
  return { ...order, payload: { to, ...given({ value, data }) } as ReplaceOrder["payload"] };
}
