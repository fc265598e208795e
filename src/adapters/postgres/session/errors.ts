import pg from "pg";
import { messageOf } from "../../../domain/text/thrown.ts";
import {
  BatchRefused,
  HistoryChanged,
  NotLoaded,
  OutcomeUnknown,
  StoreUnavailable,
} from "../../../ports/lane-store.ts";
import { InstanceOver, SchemaTooNew } from "../../../ports/lease-store.ts";

/**
 * Error codes of a transaction that waited too long or lost against another: nothing is committed, and a retry may
 * succeed.
 */
const BUSY = new Set(["57014", "55P03", "40P01", "40001", "25P03", "25P04"]);

/**
 * Classes of errors about the data itself: data exception, constraint violation, program limit, and our own
 * `require_rows`. A single bad item makes the whole batch fail, and a retry fails too.
 */
const REFUSED_CLASSES = new Set(["22", "23", "54", "FP"]);

/**
 * Error codes that end the connection, or come from a pooler that lost its server. After such an error a pipelined
 * COMMIT may still have been executed. SQLSTATE is used, because `severity` is translated into the server's language.
 *
 * The idle limit (25P03) is not included: the server raises it only while it waits for the next message of an open
 * transaction, before it reads that message (postgres.c, PostgresMain), so no COMMIT was read. `transaction_timeout`
 * (25P04) is included: it may be raised after a COMMIT if the role has a limit of its own.
 */
const CONNECTION_ENDED = /^(08|57P|25P04|58|XX|F0)/;

/**
 * Class of errors about lacking resources: a full disk, no memory, no free connection. Operators can fix them, callers
 * cannot.
 */
const LACKING = "53";

/** Converts an error of the database driver to an error of the store ports. */
export function asStoreError(error: unknown): Error {
  if (isStoreError(error)) return error;
  const code = sqlState(error);
  const message = messageOf(error);
  if (code === null) return new StoreUnavailable(message, { cause: error });
  if (BUSY.has(code)) return new StoreUnavailable(message, { cause: error, busy: true });
  if (REFUSED_CLASSES.has(code.slice(0, 2))) return new BatchRefused(message, { cause: error });
  const text = `${message} (${code})`;
  return new StoreUnavailable(text, { cause: error, ...(code.startsWith(LACKING) ? { lacks: text } : {}) });
}

/**
 * Converts the error of a connection that ended before COMMIT was sent: nothing is committed, and a retry on another
 * connection may succeed.
 */
export function asLostBeforeCommit(error: unknown): unknown {
  if (isStoreError(error) || sqlState(error) !== null || !(error instanceof Error)) return error;
  return new StoreUnavailable(error.message, { cause: error, busy: true });
}

/**
 * True if the server itself reported, on a live connection, that the transaction failed. That proves that it is not
 * committed.
 */
export function provesAbort(error: unknown): boolean {
  const code = sqlState(error);
  return code !== null && !CONNECTION_ENDED.test(code);
}

function isStoreError(error: unknown): error is Error {
  const known = [StoreUnavailable, BatchRefused, NotLoaded, HistoryChanged, OutcomeUnknown, InstanceOver, SchemaTooNew];
  return known.some((each) => error instanceof each);
}

function sqlState(error: unknown) {
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null;
}
