/** Writes about the lane as a whole: its next nonce, its nonce gaps, and whether it may allocate and send. */
import { skippedHole } from "../nonces/holes.ts";
import type { Draft } from "./draft.ts";
import { loaded } from "./part.ts";
import type {
  AlignWrite,
  CloseHolesWrite,
  FindSkippedWrite,
  LaneDecision,
  LedgerOutcome,
  NonceOutcome,
  RealignWrite,
  ReconcileWrite,
  SuspendWrite,
  UnwatchWrite,
} from "./writes.ts";

/** Raises the lane's next nonce, never lowers it. */
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
 * Compares the lane with the chain after the database's history changed. If commits may be lost, and the lane has no
 * next nonce although the chain has transactions of its signer, its rows may be lost: the lane is suspended until an
 * operator has checked it.
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

/**
 * Lowers the lane's next nonce, but never to a nonce that may have been used: by a transaction, stored or deleted, or
 * through a reservation that its caller did not release.
 */
export function realign(draft: Draft, { floor, decision }: RealignWrite): LedgerOutcome {
  const { ledger } = draft;
  if (draft.isCarriedOut(decision?.actionKey)) return { status: "aligned", cursor: ledger.cursor ?? floor };
  keepDecision(draft, decision);
  // A lane without a next nonce has none to lower, and this count is too weak to set one: a single endpoint may lie.
  if (ledger.cursor === null) return { status: "aligned", cursor: floor };
  const ended = loaded(ledger.endedThrough, "the highest nonce whose reservation ended");
  const from = Math.max(floor, ended === null ? 0 : ended + 1, ledger.departedBelow ?? 0);
  const left = [ledger.nonces.highestFrom(from), ledger.reserved.highestFrom(from)];
  const lowest = Math.max(from, ...left.map((nonce) => (nonce === null ? 0 : nonce + 1)));
  const cursor = Math.min(ledger.cursor, lowest);
  for (const [nonce] of ledger.holes.every(cursor)) draft.record({ kind: "holeClosed", nonce });
  if (cursor !== ledger.cursor) draft.record({ kind: "cursor", cursor });
  return { status: "aligned", cursor };
}

/**
 * Suspends or resumes the lane. A suspension because of lost commits is stricter: an operator's suspension does not
 * replace it, but an operator's resume ends it.
 */
export function suspend(draft: Draft, { suspended, decision }: SuspendWrite): LedgerOutcome {
  if (draft.isCarriedOut(decision?.actionKey)) return { status: "done" };
  const before = draft.ledger.suspendedBy;
  const suspendedBy = suspended ? (before ?? "OPERATOR") : null;
  keepDecision(draft, decision);
  if (suspendedBy !== before) draft.record({ kind: "suspension", suspendedBy });
  return { status: "done" };
}

function keepDecision(draft: Draft, decision: LaneDecision | undefined) {
  if (decision === undefined) return;
  draft.record({ kind: "decision", decision, at: draft.at });
  draft.keepActionKey(decision.actionKey);
}

/** Closes nonce gaps that another program's transactions have filled. */
export function closeHoles(draft: Draft, { nonces }: CloseHolesWrite): LedgerOutcome {
  for (const nonce of nonces) {
    const hole = draft.ledger.holes.get(nonce);
    if (hole === null) continue;
    // The nonce of an expired reservation was reserved for its caller. So if it is used, this is not reported as use of
    // the key by another program.
    if (hole.why !== "expired") draft.noteUse({ nonce, through: nonce });
    draft.record({ kind: "holeClosed", nonce });
  }
  return { status: "done" };
}

/**
 * Finds nonces that the lane skipped by mistake: they are below its next nonce, have no transaction or reservation, and
 * are not recorded as gaps.
 */
export function findSkipped(draft: Draft, { from, below }: FindSkippedWrite): NonceOutcome {
  const { cursor, nonces, reserved, holes, departedBelow } = draft.ledger;
  const isHeld = (nonce: number) =>
    nonces.get(nonce) !== null || reserved.get(nonce) !== null || holes.get(nonce) !== null;
  const found = [];
  // Start above the highest deleted transaction: it was mined too deep for any reorg, and so was everything below it.
  for (let nonce = Math.max(from, departedBelow ?? 0); nonce < Math.min(below, cursor ?? 0); nonce++) {
    if (!isHeld(nonce)) found.push(skippedHole(nonce, draft.at));
  }
  for (const hole of found) draft.record({ kind: "holeLeft", hole });
  return { status: "skipped", holes: found };
}

/** Stops watching settled transactions for reorgs if they were mined at or below the block. */
export function unwatch(draft: Draft, { throughBlock }: UnwatchWrite): LedgerOutcome {
  for (const [block, all] of draft.ledger.watched.through(throughBlock)) {
    for (const each of all) draft.record({ kind: "unwatched", ...each, block });
  }
  return { status: "done" };
}
