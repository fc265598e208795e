/**
 * How long a transaction may hold the lanes it has locked. A node that stalls in the middle (GC pause, SIGSTOP,
 * partition) must be over, by the server's timers, within a third of the lease, so that a takeover never waits for it.
 */
export interface Limits {
  /** For the whole of a transaction, also by the client's clock. */
  readonly transactionMs: number;
  /** Between two round trips. */
  readonly idleMs: number;
  /** Statements of the first round trip: opening, locking, looking up. */
  opening(statements: number): StatementLimits;
  /** Statements of the second: writing, and the wait for the feed's counter. */
  writing(statements: number): StatementLimits;
}

export interface StatementLimits {
  readonly statementMs: number;
  readonly lockMs: number;
}

/** From this version on the server itself limits a transaction as a whole. */
export const TRANSACTION_TIMEOUT_SINCE = 170_000;

/** A node paused between the feed's counter and COMMIT must not stall the completions of others for longer. */
const FEED_LOCK_MS = 250;

export function limitsFor(leaseDurationMs: number, serverVersion: number): Limits {
  const transactionMs = Math.floor(leaseDurationMs / 3) - 1;
  const whole = serverVersion >= TRANSACTION_TIMEOUT_SINCE;
  const share = (part: number, statements: number) =>
    Math.max(1, Math.floor((transactionMs * part) / (whole ? 1 : statements)));
  return {
    transactionMs,
    idleMs: Math.floor(transactionMs * 0.15),
    opening: (statements) => {
      const statementMs = share(0.4, statements);
      return { statementMs, lockMs: statementMs };
    },
    writing: (statements) => {
      const statementMs = share(0.45, statements);
      return { statementMs, lockMs: Math.min(statementMs, FEED_LOCK_MS) };
    },
  };
}
