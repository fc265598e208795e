import { type Command, InvalidArgumentError, Option } from "commander";
import type { PricedOrder, ReplaceOrder } from "../../contract/actions.ts";
import { actionReport } from "./present.ts";
import { type Asking, askNode, type RemoteOptions } from "./remote.ts";

interface Action {
  readonly at: (program: Command) => Command;
  readonly description: string;
  readonly options: readonly Option[];
}

const wei = (flag: string, what: string) => new Option(`${flag} <wei>`, `${what}, in wei`).argParser(digits);
const fees = () => [
  wei("--max-fee-per-gas", "fee cap"),
  wei("--max-priority-fee-per-gas", "tip"),
  wei("--gas-price", "price of a legacy transaction"),
];

/** What an operator does to one transaction, by the names that the client has for it; the options of a command are its order. */
const ACTIONS: Readonly<Record<"cancel" | "replace" | "resubmit" | "reprice", Action>> = {
  cancel: {
    at: (program) => program.command("cancel"),
    description: "use a transaction's nonce up with nothing; whichever payload is mined decides",
    options: fees(),
  },
  replace: {
    at: (program) => program.command("replace"),
    description: "put another payload at a transaction's nonce",
    options: [
      new Option("--payload <json>", 'as in POST /tx: {"to":"0x…","value":"1"}').argParser(json).makeOptionMandatory(),
    ],
  },
  resubmit: {
    at: (program) => program.command("resubmit"),
    description: "send a transaction's stored bytes again, now",
    options: [],
  },
  reprice: {
    at: (program) => program.command("reprice"),
    description: "sign a transaction's payload again for more: the market's price, or the one given",
    options: fees(),
  },
};

export function addOperating(program: Command, asking: Asking): void {
  for (const action of Object.keys(ACTIONS) as (keyof typeof ACTIONS)[]) {
    const { at, description, options } = ACTIONS[action];
    const command: Command = askNode(at(program), asking, {
      ask: (client) => {
        const { url: _, apiKey: __, ...order } = command.opts<RemoteOptions & PricedOrder & ReplaceOrder>();
        return client[action](command.args[0] ?? "", order);
      },
      show: (transaction) => actionReport(action, transaction),
    })
      .description(description)
      .argument("<txId>", "its id")
      .addOption(new Option("--reason <text>", "why; kept in the history").makeOptionMandatory());
    for (const option of options) command.addOption(option);
  }
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
