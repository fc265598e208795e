import { inspect } from "node:util";

/** A command that failed for a known reason: one line each, without a stack. */
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

/** A wrong command line or file. */
export function misused(line: string): CommandFailed {
  return new CommandFailed([line], EXIT_CODES.misused);
}

/** Advice for common errors, by Node's or PostgreSQL's code. */
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

/** The driver's message (without a code) if the server requires a password and it has none. */
const NO_PASSWORD = /client password must be a string/;

/** One readable line. */
export function describeFailure(error: unknown): string {
  // Node's AggregateError of a connection to several addresses has an empty message.
  const isEmpty = error instanceof AggregateError && error.message === "";
  const cause: unknown = isEmpty ? (error.errors[0] ?? error) : error;
  const text = cause instanceof Error ? cause.message || cause.name : String(cause);
  const message = text.replace(/\p{Cc}+/gu, " ").trim();
  if (NO_PASSWORD.test(message)) return "the database asks for a password, and FENCEPOST_DATABASE_URL has none";
  const advice = cause instanceof Error && "code" in cause ? ADVICE[String(cause.code)] : undefined;
  return advice === undefined ? message : `${message} (${advice})`;
}

/** The error with its stack and causes, for `--verbose`. */
export function describeWhole(error: unknown): string {
  return error instanceof Error ? inspect(error) : String(error);
}

/** Exit codes for scripts; docs/cli.md lists the same. */
export const EXIT_CODES = {
  ok: 0,
  /** May work at another time or after a repair: database down, port in use, a crash. */
  failed: 1,
  /** The command line or the configuration is wrong: it fails again until it is changed. */
  misused: 2,
  /** A node refused: the request, the key or the transaction's state does not allow it. */
  refused: 3,
  /** No node answered. A request may or may not have been accepted. */
  notReached: 4,
  /** `--wait`: the transaction is final, and the caller's payload was not executed. */
  transactionFailed: 5,
  /** `--wait`: the transaction was not final in time. It continues. */
  stillWaiting: 6,
  /** A second Ctrl-C or SIGTERM ended the process early. The next start continues its work. */
  interrupted: 130,
  terminated: 143,
} as const;
