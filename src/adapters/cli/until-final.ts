/** Waiting for a transaction's end, and what a script is told by the exit code. */
import { Option } from "commander";
import type { FencepostClient, Transaction } from "../../client/index.ts";
import { CommandFailed, EXIT_CODES } from "./failure.ts";
import { duration } from "./remote.ts";
import { statusOf } from "./show-transaction.ts";
import type { CliIo } from "./terminal.ts";

export interface WaitingOptions {
  readonly wait?: true;
  /** Milliseconds. */
  readonly timeout?: number;
}

export const waitingOptions = (): readonly Option[] => [
  new Option("--wait", "until it is final; the exit code says how it ended"),
  new Option("--timeout <duration>", "with --wait: no longer than this, such as 5m; exit code 6").argParser(duration),
];

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

export function isFinal({ state }: Pick<Transaction, "state">): boolean {
  return state === "CONFIRMED" || state === "FAILED_FINAL";
}

/**
 * The transaction as it is final, or as it is when the time is over. Each change is told on standard error: standard output is
 * for the answer.
 */
export async function untilFinal(
  client: Pick<FencepostClient, "get">,
  txId: string,
  { io, timeout }: { readonly io: CliIo; readonly timeout?: number | undefined },
): Promise<Transaction> {
  const startedMs = io.now().getTime();
  const isLate = () => timeout !== undefined && io.now().getTime() - startedMs >= timeout;
  let told = "";
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const transaction = await client.get(txId);
    const status = `${statusOf(transaction)}${transaction.txHash === null ? "" : ` ${transaction.txHash}`}`;
    if (status !== told) io.stderr(`${status}\n`);
    told = status;
    if (isFinal(transaction) || isLate()) return transaction;
    await io.sleep(pauseMs);
  }
}

/** Throws where the caller's payload was not executed, or nobody knows yet. */
export function judgeOutcome(transaction: Transaction): void {
  const { txId, state, subState, lastError } = transaction;
  const status = statusOf(transaction);
  if (!isFinal(transaction)) {
    const how = `it goes on; wait again: fencepost tx ${txId} --wait, or ask why: fencepost explain ${txId}`;
    throw new CommandFailed([`transaction ${txId} is still ${status}: ${how}`], EXIT_CODES.stillWaiting);
  }
  if (state === "CONFIRMED" && subState !== "REPLACED") return;
  const why = lastError === null ? "" : `: ${lastError}`;
  throw new CommandFailed([`transaction ${txId} is ${status}${why}`], EXIT_CODES.transactionFailed);
}
