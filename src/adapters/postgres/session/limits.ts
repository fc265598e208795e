/**
 * How long a transaction may hold the lanes it has locked. A node that stalls in the middle (GC pause, SIGSTOP,
 * partition) must be over, by the server's timers, within a third of the lease, so that a takeover never waits for it.
 *
 * From 17 on the server limits a transaction as a whole, and a statement may take what it needs of that. Before, only
 * statements have limits: the time is divided among them, most of it to those that wait for locks. Such a wait is longer
 * than the idle time, so that a transaction that waits for a stalled node outlasts it.
 */
export interface StatementLimits {
  readonly statementMs: number;
  readonly lockMs: number;
}

const TRANSACTION_TIMEOUT_SINCE = 170_000;
const SHARES = { waiting: 0.35, reading: 0.15, idle: 0.1, writing: 0.4 };

/** A node paused between the feed's counter and COMMIT must not stall the completions of others for longer. */
const FEED_LOCK_MS = 250;

export function limitsFor(leaseDurationMs: number, serverVersion: number) {
  const transactionMs = Math.floor(leaseDurationMs / 3) - 1;
  const whole = hasTransactionTimeout(serverVersion);
  const share = (part: keyof typeof SHARES, statements: number) =>
    Math.max(1, Math.floor((transactionMs * SHARES[part]) / (whole ? 1 : Math.max(1, statements))));
  const limits = (statementMs: number, lockMs = statementMs): StatementLimits => ({ statementMs, lockMs });
  return {
    /** For the whole of a transaction, also by the client's clock. */
    transactionMs,
    /** Between two round trips. */
    idleMs: share("idle", 1),
    /** The first statements, which wait for locks. */
    waiting: (statements: number) => limits(share("waiting", statements)),
    /** Those after the locks in the same round trip; null if the whole is limited anyway. */
    reading: (statements: number) => (whole ? null : limits(share("reading", statements))),
    /** Statements of the second round trip, and the wait for the feed's counter. */
    writing: (statements: number) => {
      const statementMs = share("writing", statements);
      return limits(statementMs, Math.min(statementMs, FEED_LOCK_MS));
    },
  };
}

export type Limits = ReturnType<typeof limitsFor>;

export function hasTransactionTimeout(serverVersion: number): boolean {
  return serverVersion >= TRANSACTION_TIMEOUT_SINCE;
}
