/**
 * Decides which transactions may leave their nonce. All code that moves transactions, expires them or handles nonce
 * gaps uses only these functions. When two places had different rules, a nonce was given up below a transaction that
 * could not move, and its lane was blocked for ever.
 */
import type { Ledger, LedgerTransaction } from "./ledger.ts";
import { loaded } from "./part.ts";

type Holder = Pick<LedgerTransaction, "state" | "attemptCount" | "nonce" | "pinned">;

/**
 * True if the transaction was certainly never signed. Not certain for nonces that were given before the database lost,
 * or may have lost, commits: a lost commit may have contained a signature that was already sent.
 */
function isUnsigned<Of extends Holder>(tx: Of, epochFloor: number): tx is Of & { readonly nonce: number } {
  const { state, attemptCount, nonce } = tx;
  return state === "ALLOCATED" && attemptCount === 0 && nonce !== null && nonce >= epochFloor;
}

/**
 * True if the transaction may get another nonce: no attempt of it can be mined at the present nonce, and its caller did
 * not choose that nonce.
 */
export function mayMove(tx: Holder, epochFloor: number): boolean {
  return isUnsigned(tx, epochFloor) && !tx.pinned;
}

/**
 * True if the transaction may end and give up its nonce: it was never signed, all transactions above may move down, and
 * no nonce above is reserved. Otherwise a nonce gap would remain.
 */
export function mayGiveUp({ epochFloor, fixed, reserved }: Ledger, tx: Holder): boolean {
  if (!isUnsigned(tx, loaded(epochFloor, "the floor of the epoch"))) return false;
  const above = tx.nonce + 1;
  return fixed.highestFrom(above) === null && reserved.highestFrom(above) === null;
}

/**
 * Updates `fixed`, the list of transactions that may not change their nonce, after a transaction changed. `before` is
 * null for a new transaction.
 */
export function refixed(
  fixed: Ledger["fixed"],
  before: LedgerTransaction | null,
  after: LedgerTransaction,
): Ledger["fixed"] {
  // Skip the update if `fixed` was not loaded, as in most commits.
  if (fixed.cover.kind === "named") return fixed;
  const [from, to] = [fixedNonce(before), fixedNonce(after)];
  if (from === to) return fixed;
  const left = from === null ? fixed : fixed.delete(from);
  return to === null ? left : left.set(to, after.txId);
}

function fixedNonce(tx: LedgerTransaction | null) {
  return tx?.live && !mayMove(tx, 0) ? tx.nonce : null;
}
