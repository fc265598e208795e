import type { Ledger } from "../../../src/domain/ledger/index.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";

const SPENT = { spent: true } as const;

/**
 * Returns a lane's ledger without the transactions that are final and no longer watched for a reorg. Retention may
 * remove exactly these.
 */
export function departed(ledger: Ledger): Ledger {
  const left: { -readonly [Name in keyof Ledger]: Ledger[Name] } = { ...ledger };
  const gone = new Set<string>();
  for (const [txId, { live, state, nonce }] of ledger.transactions.known()) {
    if (live || !isSettled(state)) continue;
    gone.add(txId);
    left.transactions = left.transactions.delete(txId);
    if (nonce !== null) left.nonces = left.nonces.delete(nonce);
    left.departedBelow = Math.max(left.departedBelow ?? 0, nonce === null ? 0 : nonce + 1);
  }
  for (const [requestId, owner] of ledger.requests.known()) {
    if (!("spent" in owner) && gone.has(owner.txId)) left.requests = left.requests.set(requestId, SPENT);
  }
  for (const [reservationId, { txId, requestId }] of ledger.reservations.known()) {
    if (txId === null || !gone.has(txId)) continue;
    left.reservations = left.reservations.delete(reservationId);
    if (requestId === null) continue;
    left.reservedAs = left.reservedAs.delete(requestId);
    left.requests = left.requests.set(requestId, SPENT);
  }
  return left;
}
