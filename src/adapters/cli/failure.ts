import { inspect } from "node:util";

/** A command that ends for a reason which is already in words: one line each. */
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

/** What to do about the common errors, by Node's or PostgreSQL's own code. */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there: is it running, and is the URL right?",
  ECONNRESET: "the other side hung up: is it running, and does it speak this protocol?",
  ENOTFOUND: "there is no such host: is the URL right?",
  ETIMEDOUT: "no answer: is a firewall between?",
  EADDRINUSE: "stop what listens there, or choose another with --port or FENCEPOST_PORT",
  EADDRNOTAVAIL: "that is no address of this machine: see FENCEPOST_HOST",
  EACCES: "the user who runs this may not do that",
  "28P01": "user or password in FENCEPOST_DATABASE_URL is wrong",
  "28000": "the server does not let this user in: see FENCEPOST_DATABASE_URL and its pg_hba.conf",
  "3D000": "create it first, or correct the name in FENCEPOST_DATABASE_URL",
  "42501":
    "the database user lacks a right: let it create the schema fencepost, or run `fencepost migrate --grant` with its name as the schema's owner",
};

/** The driver's words where the server asks for a password and it has none; without a code. */
const NO_PASSWORD = /client password must be a string/;

/** One readable line. */
export function describeFailure(error: unknown): string {
  // A connection that tried several addresses fails with an AggregateError whose own message is empty.
  const isEmpty = error instanceof AggregateError && error.message === "";
  const cause: unknown = isEmpty ? (error.errors[0] ?? error) : error;
  const words = cause instanceof Error ? cause.message || cause.name : String(cause);
  const message = words.replace(/\p{Cc}+/gu, " ").trim();
  if (NO_PASSWORD.test(message)) return "the database asks for a password, and FENCEPOST_DATABASE_URL has none";
  const advice = cause instanceof Error && "code" in cause ? ADVICE[String(cause.code)] : undefined;
  return advice === undefined ? message : `${message} (${advice})`;
}

/** Everything there is, for `--verbose`. */
export function describeWhole(error: unknown): string {
  return error instanceof Error ? inspect(error) : String(error);
}

/** What a script may rely on; docs/cli.md lists the same. */
export const EXIT_CODES = {
  ok: 0,
  /** Something that may work another time or after a repair: database down, port taken, a crash. */
  failed: 1,
  /** The command line or the configuration is wrong: it will fail the same way until it is changed. */
  misused: 2,
  /** A node said no: the request, the key or the transaction's state does not allow it. */
  refused: 3,
  /** No node answered: nothing is known, also not whether it was taken. */
  notReached: 4,
  /** What was waited for is final, and the caller's payload was not executed. */
  transactionFailed: 5,
  /** What was waited for was not final in the time given; it goes on. */
  stillWaiting: 6,
  /** Ctrl-C, or SIGTERM, a second time before it had ended; what was in hand is picked up by the next start. */
  interrupted: 130,
  terminated: 143,
} as const;
