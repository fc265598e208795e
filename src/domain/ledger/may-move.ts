/**
 * Decides which transactions may leave their nonce. Shift-down, expiry and holes use these rules only: when two of them
 * differed, a nonce was given up below one that could not move, and its lane was blocked for ever.
 */
import type { Ledger, LedgerTransaction } from "./ledger.ts";
import { loaded } from "./part.ts";

type Holder = Pick<LedgerTransaction, "state" | "attemptCount" | "nonce" | "pinned">;

/**
 * Never signed, as far as the database can know. Nonces below the epoch's floor were given out before it last lost, or may
 * have lost, commits: a signature may be among them, and its bytes on the wire.
 */
function isUnsigned({ state, attemptCount, nonce }: Holder, epochFloor: number) {
  return state === "ALLOCATED" && attemptCount === 0 && nonce !== null && nonce >= epochFloor;
}

/** May take another nonce: nothing of it can be mined at this one, and its caller did not name it. */
export function mayMove(tx: Holder, epochFloor: number): boolean {
  return isUnsigned(tx, epochFloor) && !tx.pinned;
}

/** May end and leave its nonce to others: never signed, and everything above may move down. Else a hole would stay. */
export function mayGiveUp({ epochFloor, fixed, reserved }: Ledger, tx: Holder): boolean {
  if (tx.nonce === null || !isUnsigned(tx, loaded(epochFloor, "the floor of the epoch"))) return false;
  const above = tx.nonce + 1;
  return fixed.highestFrom(above) === null && reserved.highestFrom(above) === null;
}

/** `fixed` after a transaction changed. Null: it has none before, or none any more. */
export function refixed(
  fixed: Ledger["fixed"],
  before: LedgerTransaction | null,
  after: LedgerTransaction | null,
): Ledger["fixed"] {
  // Most commits do not ask.
  if (fixed.cover.kind === "named") return fixed;
  const [from, to] = [fixedNonce(before), fixedNonce(after)];
  if (from === to) return fixed;
  const left = from === null ? fixed : fixed.delete(from);
  return to === null || after === null ? left : left.set(to, after.txId);
}

function fixedNonce(tx: LedgerTransaction | null) {
  return tx?.live && !mayMove(tx, 0) ? tx.nonce : null;
}
