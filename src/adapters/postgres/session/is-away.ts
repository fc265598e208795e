import pg from "pg";
import { OutcomeUnknown, StoreUnavailable } from "../../../ports/lane-store.ts";

/**
 * Error codes of Node.js for a server that is not running yet or cannot be reached. A host's name may become resolvable
 * only after its clients have started.
 */
const NOT_REACHED: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH"],
  ...["ENOTFOUND", "EAI_AGAIN", "ENOENT"],
]);

/**
 * Error codes of a server that is starting, shutting down or crashed (57P), out of connections (53300), of a broken
 * connection (08), and of a transaction that was idle for too long (25P03). A transaction that took too long (25P04) is
 * not included: a migration that exceeds a role's own limit would be retried forever, and hold its locks each time.
 */
const NOT_NOW = /^(?:57P0[123]|53300|0800[0136]|25P03)$/;

/**
 * Texts of driver errors without a code, and of PgBouncer's errors about the server behind it (08P01, like all its
 * refusals).
 */
const WORDS = /\btimeout (?:expired|exceeded)\b|connection terminated|connect failed|server login has been failing/i;

const DEEPEST = 5;

/**
 * True if the server does not answer now, but may later. Any other failure at the first connection (password, database
 * name, rights, TLS) does not go away by waiting.
 */
export function isDatabaseAway(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > DEEPEST) return false;
  if (error instanceof AggregateError) return error.errors.every((each) => isDatabaseAway(each, depth + 1));
  // Two errors of the store itself also count as "away": nothing is committed, or the outcome is unknown. A retry may
  // succeed. The store sets its own time limits, so these errors do not come from a limit of the database role, which
  // every retry would exceed again.
  if (error instanceof OutcomeUnknown || (error instanceof StoreUnavailable && error.busy)) return true;
  const { code } = error as { readonly code?: unknown };
  if (typeof code === "string" && NOT_REACHED.has(code)) return true;
  if (error instanceof pg.DatabaseError) return NOT_NOW.test(error.code ?? "") || WORDS.test(error.message);
  return error.cause === undefined ? WORDS.test(error.message) : isDatabaseAway(error.cause, depth + 1);
}
