import { type Command, InvalidArgumentError, Option } from "commander";
import type { FencepostClient, Transaction } from "../../client/index.ts";
import type { PricedOrder, ReplaceOrder } from "../../contract/actions.ts";
import { actionReport } from "./present.ts";
import { addRemoteOptions, explainRefusal, type RemoteActions, type RemoteOptions } from "./remote.ts";

interface OrderOptions extends RemoteOptions, Omit<PricedOrder, "audit"> {
  readonly payload?: ReplaceOrder["payload"];
}

interface Action {
  readonly at: (program: Command) => Command;
  readonly description: string;
  readonly options: readonly Option[];
  readonly run: (client: FencepostClient, txId: string, options: OrderOptions) => Promise<Transaction>;
}

const wei = (flag: string, what: string) => new Option(`${flag} <wei>`, `${what}, in wei`).argParser(digits);
const fees = () => [
  wei("--max-fee-per-gas", "fee cap"),
  wei("--max-priority-fee-per-gas", "tip"),
  wei("--gas-price", "price of a legacy transaction"),
];

/** What an operator does to one transaction; the same actions as the API has. */
export function addOperating(program: Command, actions: RemoteActions, io: { stdout(text: string): void }): void {
  for (const { at, description, options, run } of ACTIONS) {
    const command = addRemoteOptions(at(program))
      .description(description)
      .argument("<txId>", "its id")
      .addOption(new Option("--reason <text>", "why; kept in the history").makeOptionMandatory());
    for (const option of options) command.addOption(option);
    command.action(async (txId: string, _, self: Command) => {
      const given = self.optsWithGlobals<OrderOptions>();
      const transaction = await run(await actions.connect(given), txId, given).catch(explainRefusal);
      io.stdout(
        given.json === true ? `${JSON.stringify(transaction, null, 2)}\n` : actionReport(self.name(), transaction),
      );
    });
  }
}

const ACTIONS: readonly Action[] = [
  {
    at: (program) => program.command("cancel"),
    description: "use a transaction's nonce up with nothing; whichever payload is mined decides",
    options: fees(),
    run: (client, txId, options) => client.cancel(txId, pricedOrder(options)),
  },
  {
    at: (program) => program.command("replace"),
    description: "put another payload at a transaction's nonce",
    options: [
      new Option("--payload <json>", 'as in POST /tx: {"to":"0x…","value":"1"}').argParser(json).makeOptionMandatory(),
    ],
    run: (client, txId, { reason, payload }) =>
      client.replace(txId, { reason, payload: payload as ReplaceOrder["payload"] }),
  },
  {
    at: (program) => program.command("resubmit"),
    description: "send a transaction's stored bytes again, now",
    options: [],
    run: (client, txId, { reason }) => client.resubmit(txId, { reason }),
  },
  {
    at: (program) => program.command("reprice"),
    description: "sign a transaction's payload again for more: the market's price, or the one given",
    options: fees(),
    run: (client, txId, options) => client.reprice(txId, pricedOrder(options)),
  },
];

function pricedOrder({ reason, maxFeePerGas, maxPriorityFeePerGas, gasPrice }: OrderOptions): PricedOrder {
  return {
    reason,
    ...(maxFeePerGas === undefined ? {} : { maxFeePerGas }),
    ...(maxPriorityFeePerGas === undefined ? {} : { maxPriorityFeePerGas }),
    ...(gasPrice === undefined ? {} : { gasPrice }),
  };
}

function digits(text: string): string {
  if (!/^[0-9]{1,78}$/.test(text)) throw new InvalidArgumentError("It must be a whole number of wei.");
  return text;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError("It must be JSON.");
  }
}
