/** Writes about the lane as a whole: how far its nonces are given, and whether it may act. */
import type { Draft } from "./draft.ts";
import { isCarriedOut, keepOrderKey } from "./order-keys.ts";
import { loaded } from "./part.ts";
import type { AlignWrite, LaneDecision, LedgerOutcome, RealignWrite, ReconcileWrite, SuspendWrite } from "./writes.ts";

/** Raises the cursor, never lowers it. */
export function align(draft: Draft, { floor }: AlignWrite): LedgerOutcome {
  return { status: "aligned", cursor: raise(draft, floor) };
}

function raise(draft: Draft, floor: number) {
  const { cursor } = draft.ledger;
  const raised = Math.max(cursor ?? floor, floor);
  if (raised !== cursor) draft.record({ kind: "cursor", cursor: raised });
  return raised;
}

/**
 * A lane without a cursor that the chain knows all the same may be one whose rows were lost: then somebody must look at
 * it.
 */
export function reconcile(draft: Draft, { floor }: ReconcileWrite): LedgerOutcome {
  const { reconciled, cursor, mayHaveLost } = draft.ledger;
  const mayBeLost = !reconciled && cursor === null && floor > 0;
  if (mayBeLost && loaded(mayHaveLost, "whether commits may have been lost")) {
    draft.record({ kind: "suspension", suspendedBy: "HISTORY" });
  }
  const raised = raise(draft, floor);
  if (!reconciled) draft.record({ kind: "reconciliation" });
  return { status: "reconciled", cursor: raised, suspendedBy: draft.ledger.suspendedBy };
}

/** Lowered, but not to a nonce that may have left: a transaction's, kept or not, or one that a caller was given and did not release. */
export function realign(draft: Draft, { floor, decision }: RealignWrite): LedgerOutcome {
  const { ledger } = draft;
  if (isCarriedOut(draft, decision?.order)) return { status: "aligned", cursor: ledger.cursor ?? floor };
  const ended = loaded(ledger.endedThrough, "the highest nonce whose reservation ended");
  const from = Math.max(floor, ended === null ? 0 : ended + 1, ledger.departedBelow ?? 0);
  const left = [ledger.nonces.highestFrom(from), ledger.reserved.highestFrom(from)];
  const lowest = Math.max(from, ...left.map((nonce) => (nonce === null ? 0 : nonce + 1)));
  const cursor = Math.min(ledger.cursor ?? lowest, lowest);
  keepDecision(draft, decision);
  for (const [nonce] of ledger.holes.every(cursor)) draft.record({ kind: "holeClosed", nonce });
  if (cursor !== ledger.cursor) draft.record({ kind: "cursor", cursor });
  return { status: "aligned", cursor };
}

/** The stop by a lost history is the stricter one: an operator's does not replace it, but ends it when taken back. */
export function suspend(draft: Draft, { suspended, decision }: SuspendWrite): LedgerOutcome {
  if (isCarriedOut(draft, decision?.order)) return { status: "done" };
  const before = draft.ledger.suspendedBy;
  const suspendedBy = suspended ? (before ?? "OPERATOR") : null;
  keepDecision(draft, decision);
  if (suspendedBy !== before) draft.record({ kind: "suspension", suspendedBy });
  return { status: "done" };
}

function keepDecision(draft: Draft, decision: LaneDecision | undefined) {
  if (decision === undefined) return;
  draft.record({ kind: "decision", decision, at: draft.at });
  keepOrderKey(draft, decision.order);
}
