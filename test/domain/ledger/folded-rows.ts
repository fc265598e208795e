import {
  type Change,
  type KeptTransaction,
  keptTransaction,
  type LedgerTransaction,
  stepAcknowledged,
  stepPlanned,
  type TransactionRow,
  UNSIGNED,
} from "../../../src/domain/ledger/index.ts";

/** The transactions of a lane as its owner has them in memory, updated from acknowledged commits. */
export class FoldedRows {
  private readonly rows = new Map<string, KeptTransaction>();

  fold(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "allocated") this.read(change.intent.txId, UNSIGNED);
      const before = change.kind === "moved" ? this.rows.get(change.item.txId) : undefined;
      if (change.kind !== "moved" || before === undefined) continue;
      this.rows.set(change.item.txId, stepAcknowledged(stepPlanned(before, change.item), change));
    }
  }

  read(txId: string, row: TransactionRow): void {
    this.rows.set(txId, keptTransaction(row));
  }

  /**
   * The acknowledged row of a transaction; undefined if the transaction was allocated before the random sequence began.
   */
  of(txId: string): TransactionRow | undefined {
    return this.rows.get(txId)?.acknowledged;
  }
}

/** The fields of a transaction that an owner has in memory, taken from a complete ledger for comparison. */
export function rowIn({ state, subState, attempts = [], acceptedOrdinal, details, ...tx }: LedgerTransaction) {
  const { receipt, submitAttempts, lastError } = details ?? {};
  const bare = attempts.map(({ firstSentAt: _, ...attempt }) => attempt);
  const times = { heldSince: tx.heldSince && true, expiredAt: tx.expiredAt && true };
  return {
    state,
    subState,
    acceptedOrdinal,
    ...times,
    attempts: bare,
    details: { receipt, submitAttempts, lastError },
  };
}
