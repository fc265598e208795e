/** A question on a terminal before a command that is hard to undo. */
import { Option } from "commander";
import { CommandFailed } from "./failure.ts";
import type { CliIo } from "./terminal.ts";

export const YES = new Option("--yes", "do not ask on a terminal; without a terminal nothing is asked");

/**
 * Asks, and throws unless the answer is yes. Without a terminal (`io.ask` is null) it does not ask: a script must not
 * hang, and an emergency stop from a script must not fail.
 */
export async function confirm({ ask }: Pick<CliIo, "ask">, question: string | null): Promise<void> {
  if (ask === null || question === null) return;
  const answer = await ask(`${question} [y/N] `);
  if (!/^\s*y(es)?\s*$/i.test(answer)) throw new CommandFailed(["nothing was done"]);
}
