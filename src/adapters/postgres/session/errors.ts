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

/** Waited too long, or lost against another transaction: nothing is committed, and another try may well succeed. */
const BUSY = new Set(["57014", "55P03", "40P01", "40001", "25P03", "25P04"]);

/**
 * Classes of errors about the data itself: data exception, constraint violation, program limit, and our own
 * `require_rows`. One item poisons the batch, and it will again.
 */
const REFUSED_CLASSES = new Set(["22", "23", "54", "FP"]);

/**
 * Errors that end the connection, or come from a pooler that lost its server. After such an answer a pipelined COMMIT
 * may still have been carried out. By SQLSTATE, because `severity` is translated into the server's language.
 *
 * The idle limit (25P03) is not among them: the server raises it only while it waits for the next message of an open
 * transaction, before it reads that message (postgres.c, PostgresMain), so no COMMIT was read. `transaction_timeout`
 * (25P04) is: it may be raised behind a COMMIT if the role has one of its own.
 */
const CONNECTION_ENDED = /^(08|57P|25P04|58|XX|F0)/;

/** A full disk, no memory, no place for another connection: nothing that a caller can do anything about, but people can. */
const LACKING = "53";

/** Converts an error to the store errors of the ports. */
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

/** A connection that ended before COMMIT was sent: nothing is committed, and over another one it may well succeed. */
export function asLostBeforeCommit(error: unknown): unknown {
  if (isStoreError(error) || sqlState(error) !== null || !(error instanceof Error)) return error;
  return new StoreUnavailable(error.message, { cause: error, busy: true });
}

/** True if the server itself reported, on a live connection, that the transaction failed: then it is not committed. */
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
