import pg from "pg";
import { OutcomeUnknown, StoreUnavailable } from "../../../ports/lane-store.ts";

/** Node's words for a server that is not there (yet), or not to be reached. A host's name may be known later than its users. */
const NOT_REACHED: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH"],
  ...["ENOTFOUND", "EAI_AGAIN", "ENOENT"],
]);

/**
 * Starting up, shutting down or crashed (57P), out of connections (53300), a broken connection (08), or a transaction
 * that the server ended because it was idle for too long (25P03). Not one that took too long (25P04): a migration that
 * a role's own limit ends would be retried for ever, and hold its locks each time.
 */
const NOT_NOW = /^(?:57P0[123]|53300|0800[0136]|25P03)$/;

/** The driver's errors without a code, and PgBouncer's about a server behind it (as 08P01, like all its refusals). */
const WORDS = /\btimeout (?:expired|exceeded)\b|connection terminated|connect failed|server login has been failing/i;

const DEEPEST = 5;

/**
 * The server does not answer now, and may later. Everything else that fails at the first connection (password, name of the
 * database, rights, TLS) stays wrong however long one waits.
 */
export function isDatabaseAway(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > DEEPEST) return false;
  if (error instanceof AggregateError) return error.errors.every((each) => isDatabaseAway(each, depth + 1));
  // The store's own error: nothing is committed, or it does not know, and its limits are its own and not those of a
  // role.
  if (error instanceof OutcomeUnknown || (error instanceof StoreUnavailable && error.busy)) return true;
  const { code } = error as { readonly code?: unknown };
  if (typeof code === "string" && NOT_REACHED.has(code)) return true;
  if (error instanceof pg.DatabaseError) return NOT_NOW.test(error.code ?? "") || WORDS.test(error.message);
  return error.cause === undefined ? WORDS.test(error.message) : isDatabaseAway(error.cause, depth + 1);
}
