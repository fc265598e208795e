/**
 * Limits how long a transaction may hold the lanes it has locked. If a node stalls within a transaction (GC pause,
 * SIGSTOP, partition), the server's timers must end it within a third of the lease, so that a takeover never waits for
 * it.
 *
 * From version 17 on, the server limits a transaction as a whole, and a statement may use any part of that time.
 * Before, only statements have limits: the time is divided among them, and most of it goes to those that wait for
 * locks. A lock wait may last longer than the idle limit. So if a stalled node holds the lock, the server ends that
 * node's transaction before the wait for its lock times out.
 */
export interface StatementLimits {
  readonly statementMs: number;
  readonly lockMs: number;
}

const TRANSACTION_TIMEOUT_SINCE = 170_000;
const SHARES = { waiting: 0.35, reading: 0.15, idle: 0.1, writing: 0.4 };

/**
 * Longest wait for the feed's counter: a node paused between taking the counter and COMMIT must not stall the
 * completions of other nodes for longer.
 */
const FEED_LOCK_MS = 250;

export function limitsFor(leaseDurationMs: number, serverVersion: number) {
  const transactionMs = Math.floor(leaseDurationMs / 3) - 1;
  const whole = hasTransactionTimeout(serverVersion);
  const share = (part: keyof typeof SHARES, statements: number) =>
    Math.max(1, Math.floor((transactionMs * SHARES[part]) / (whole ? 1 : Math.max(1, statements))));
  const limits = (statementMs: number, lockMs = statementMs): StatementLimits => ({ statementMs, lockMs });
  return {
    /** Limit of a whole transaction, also enforced by the client's clock. */
    transactionMs,
    /** Limit of the idle time between two round trips. */
    idleMs: share("idle", 1),
    /** Limits of the first statements, which wait for locks. */
    waiting: (statements: number) => limits(share("waiting", statements)),
    /**
     * Limits of the statements that follow the locks in the same round trip; null if the server limits the whole
     * transaction instead.
     */
    reading: (statements: number) => (whole ? null : limits(share("reading", statements))),
    /** Limits of the statements of the second round trip, including the wait for the feed's counter. */
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
