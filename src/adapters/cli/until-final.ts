/** Waits for a transaction's outcome, and reports it by the exit code. */
import { Option } from "commander";
import type { FencepostClient, Transaction } from "../../client/index.ts";
import { type CommandOptions, during } from "./answer.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { duration } from "./remote.ts";
import { middle } from "./shorten.ts";
import { statusOf } from "./show-transaction.ts";
import { type Busy, type CliIo, type View, viewOn } from "./terminal.ts";

export interface WaitingOptions {
  readonly wait?: true;
  /** Longest time to wait for the outcome, in milliseconds. */
  readonly timeout?: number;
}

export const WAITING: readonly Option[] = [
  new Option("--wait", "until it is final; the exit code says how it ended"),
  new Option("--timeout <duration>", "with --wait: no longer than this, such as 5m; exit code 6").argParser(duration),
];

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

export function isFinal({ state }: Pick<Transaction, "state">): boolean {
  return state === "CONFIRMED" || state === "FAILED_FINAL";
}

/**
 * Resolves with the final transaction, or with its state at the timeout. Changes are printed on standard error, because
 * standard output carries only the result.
 */
export async function untilFinal(
  client: Pick<FencepostClient, "get">,
  txId: string,
  io: CliIo,
  { timeout, wide = false }: WaitingOptions & Pick<CommandOptions, "wide">,
): Promise<Transaction> {
  const startedMs = io.now().getTime();
  const isLate = () => timeout !== undefined && io.now().getTime() - startedMs >= timeout;
  let printed = "";
  const look = async (busy: Busy) => {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      const transaction = await client.get(txId);
      const status = stateLine(transaction, viewOn(io, { wide }));
      if (status !== printed) io.stderr(status);
      printed = status;
      if (isFinal(transaction) || isLate()) return transaction;
      busy.update(`waiting until transaction ${txId} is final`);
      await io.sleep(pauseMs);
    }
  };
  return during(io, "waiting for the node", look);
}

function stateLine({ txHash, ...transaction }: Transaction, { width }: View) {
  const status = statusOf(transaction);
  if (txHash === null) return `${status}\n`;
  return `${status} ${middle(txHash, width === null ? txHash.length : width - status.length - 1)}\n`;
}

/** Throws if the caller's payload was not executed, or the outcome is still unknown. */
export function judgeOutcome(transaction: Transaction): void {
  const { txId, state, subState, lastError } = transaction;
  const status = statusOf(transaction);
  if (!isFinal(transaction)) {
    const how = `it continues; wait again: fencepost tx ${txId} --wait, or ask why: fencepost explain ${txId}`;
    throw new CommandFailed([`transaction ${txId} is still ${status}: ${how}`], EXIT_CODES.stillWaiting);
  }
  if (state === "CONFIRMED" && subState !== "REPLACED") return;
  const why = lastError === null ? "" : `: ${lastError}`;
  throw new CommandFailed([`transaction ${txId} is ${status}${why}`], EXIT_CODES.transactionFailed);
}
