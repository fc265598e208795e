/** Uses of the lane's key that its owner did not make. Each leaves a notice, in the commit that learned of it. */
import type { Draft } from "./draft.ts";
import type { LedgerWrite, TransitionItem } from "./writes.ts";

/** The chain's proven count passed nonces that were never given: something else signs with this key. */
export function notePassedOver(draft: Draft, write: LedgerWrite, before: number | null): void {
  const floor = floorOf(write);
  const { cursor } = draft.ledger;
  const isPassed = before !== null && floor !== null && floor > before && cursor !== null && cursor > before;
  if (isPassed) draft.record({ kind: "usedElsewhere", nonce: before, through: floor - 1, ...UNSEEN, at: draft.at });
}

const UNSEEN = { txHash: null, txId: null };

/** `reconcile` is none of them: after a restore the database may lack what was sent from here. */
function floorOf(write: LedgerWrite): number | null {
  switch (write.kind) {
    case "allocate":
    case "reserve":
    case "align":
      return write.floor;
    case "bind":
      return write.chosen?.floor ?? null;
    default:
      return null;
  }
}

/** A foreign transaction is mined at the nonce of ours. Found again after a reorg it is not another use. */
export function noteForeign(draft: Draft, { txId, attempt }: TransitionItem): void {
  const nonce = draft.ledger.transactions.get(txId)?.nonce ?? null;
  if (attempt?.foreign !== true || nonce === null) return;
  draft.record({ kind: "usedElsewhere", nonce, through: nonce, txHash: attempt.txHash, txId, at: draft.at });
}

/** A nonce that nothing of ours held. An expired reservation's was its caller's to use. */
export function noteHoleUsed(draft: Draft, nonce: number): void {
  const hole = draft.ledger.holes.get(nonce);
  if (hole === null || hole.why === "expired") return;
  draft.record({ kind: "usedElsewhere", nonce, through: nonce, ...UNSEEN, at: draft.at });
}
