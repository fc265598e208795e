/** Nonces below the cursor that nothing of ours holds: somebody else used them, or the cursor went over them wrongly. */
import { skippedHole } from "../nonces/holes.ts";
import type { Draft } from "./draft.ts";
import { noteHoleUsed } from "./foreign-use.ts";
import type { CloseHolesWrite, FindSkippedWrite, NonceOutcome } from "./nonce-writes.ts";
import type { LedgerOutcome } from "./writes.ts";

export function closeHoles(draft: Draft, { nonces }: CloseHolesWrite): LedgerOutcome {
  for (const nonce of nonces) {
    if (draft.ledger.holes.get(nonce) === null) continue;
    noteHoleUsed(draft, nonce);
    draft.record({ kind: "holeClosed", nonce });
  }
  return { status: "done" };
}

export function findSkipped(draft: Draft, { from, below }: FindSkippedWrite): NonceOutcome {
  const { cursor, nonces, reserved, holes, departedBelow } = draft.ledger;
  const isHeld = (nonce: number) =>
    nonces.get(nonce) !== null || reserved.get(nonce) !== null || holes.get(nonce) !== null;
  const found = [];
  // What is kept no more was mined beyond any reorg, and so was all below it.
  for (let nonce = Math.max(from, departedBelow ?? 0); nonce < Math.min(below, cursor ?? 0); nonce++) {
    if (!isHeld(nonce)) found.push(skippedHole(nonce, draft.at));
  }
  for (const hole of found) draft.record({ kind: "holeLeft", hole });
  return { status: "skipped", holes: found };
}
