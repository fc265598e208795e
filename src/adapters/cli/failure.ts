import { inspect } from "node:util";

/** A command failed for a known reason. Printed as single lines without a stack trace. */
export class CommandFailed extends Error {
  readonly lines: readonly string[];
  readonly exitCode: number;

  constructor(lines: readonly string[], exitCode: number = EXIT_CODES.failed, options?: ErrorOptions) {
    super(lines.join("\n"), options);
    this.name = "CommandFailed";
    this.lines = lines;
    this.exitCode = exitCode;
  }
}

/** A wrong command line. The report names the help of the command that was called. */
export class UsageFailed extends CommandFailed {}

export function misused(line: string): CommandFailed {
  return new UsageFailed([line], EXIT_CODES.misused);
}

/** Advice for common errors, keyed by the error code of Node.js or PostgreSQL. */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there: is it running, and is the URL right?",
  ECONNRESET: "the other side closed the connection: is it running, and does it speak this protocol?",
  ENOTFOUND: "there is no such host: is the URL right?",
  ETIMEDOUT: "no answer: is there a firewall in between?",
  EADDRINUSE: "stop what listens there, or choose another with --port or FENCEPOST_PORT",
  EADDRNOTAVAIL: "that is no address of this machine: see FENCEPOST_HOST",
  EACCES: "the user who runs this may not do that",
  "28P01": "user or password in FENCEPOST_DATABASE_URL is wrong",
  "28000": "the server does not let this user in: see FENCEPOST_DATABASE_URL and its pg_hba.conf",
  "3D000": "create it first, or correct the name in FENCEPOST_DATABASE_URL",
  "42501":
    "the database user lacks a right: let it create the schema fencepost, or run `fencepost migrate --grant` with its name as the schema's owner",
};

/**
 * Message of the PostgreSQL driver if the server requires a password and none is configured. This error has no code.
 */
const NO_PASSWORD = /client password must be a string/;

/** Describes an error in one readable line. */
export function describeFailure(error: unknown): string {
  // Node.js throws an AggregateError with an empty message if it cannot connect to any of a host's addresses.
  const isEmpty = error instanceof AggregateError && error.message === "";
  const cause: unknown = isEmpty ? (error.errors[0] ?? error) : error;
  const text = cause instanceof Error ? cause.message || cause.name : String(cause);
  const message = text.replace(/\p{Cc}+/gu, " ").trim();
  if (NO_PASSWORD.test(message)) return "the database asks for a password, and FENCEPOST_DATABASE_URL has none";
  const advice = cause instanceof Error && "code" in cause ? ADVICE[String(cause.code)] : undefined;
  return advice === undefined ? message : `${message} (${advice})`;
}

/** Describes an error with its stack and causes, for `--verbose`. */
export function describeWhole(error: unknown): string {
  return error instanceof Error ? inspect(error) : String(error);
}

/** Exit codes of the CLI, for scripts. docs/cli.md lists them too. */
export const EXIT_CODES = {
  ok: 0,
  /** Exit code of a failure that may go away by itself or after a repair: database down, port in use, a crash. */
  failed: 1,
  /** Exit code if the command line or the configuration is wrong: the command fails again until it is corrected. */
  misused: 2,
  /** Exit code if a node refused: the request, the API key or the transaction's state does not allow the action. */
  refused: 3,
  /** Exit code if no node answered. The request may or may not have been accepted. */
  notReached: 4,
  /** Exit code of `--wait` if the transaction is final and the caller's payload was not executed. */
  transactionFailed: 5,
  /** Exit code of `--wait` if the transaction was not final in time. The node continues to process it. */
  stillWaiting: 6,
  /** Exit code if a second Ctrl-C or SIGTERM ended the process early. The next start continues its work. */
  interrupted: 130,
  terminated: 143,
} as const;
