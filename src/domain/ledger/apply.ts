import { allocate } from "./allocate.ts";
import { bind } from "./bind.ts";
import type { Change } from "./changes.ts";
import { Draft, type Moment } from "./draft.ts";
import { notePassedOver } from "./foreign-use.ts";
import type { Ledger } from "./ledger.ts";
import { move } from "./move.ts";
import { closeHoles, findSkipped } from "./nonce-gaps.ts";
import { expire, release, reserve } from "./reserve.ts";
import { settleIntake } from "./settle-intake.ts";
import { align, realign, reconcile, suspend } from "./standing.ts";
import { unwatch } from "./unwatch.ts";
import type { LedgerOutcome, LedgerWrite } from "./writes.ts";

export interface Applied {
  readonly ledger: Ledger;
  readonly outcome: LedgerOutcome;
  /** What a store has to persist. Empty: nothing. */
  readonly changes: readonly Change[];
}

/**
 * Judges a write, at this moment of the database's clock. Whether its writer may write at all was asked before. Throws
 * `NotLoaded` where the ledger lacks something that the write is about, `BatchRefused` where the write is a mistake.
 */
export function apply(ledger: Ledger, write: LedgerWrite, at: Date | Moment): Applied {
  const { chainId, signer } = write.fence.lane;
  const isOwn = chainId === ledger.lane.chainId && signer === ledger.lane.signer;
  if (!isOwn) throw new Error("a write to the ledger of another lane");
  const draft = new Draft(ledger, at instanceof Date ? { at, past: at } : at);
  const judge = JUDGES[write.kind] as Judge<typeof write.kind>;
  const outcome = judge(draft, write);
  notePassedOver(draft, write, ledger.cursor);
  return { ledger: draft.ledger, outcome, changes: draft.changes };
}

type Judge<Kind> = (draft: Draft, write: Extract<LedgerWrite, { readonly kind: Kind }>) => LedgerOutcome;

const JUDGES: { readonly [Kind in LedgerWrite["kind"]]: Judge<Kind> } = {
  allocate,
  transition: (draft, { items }) => ({ status: "applied", items: items.map((item) => move(draft, item)) }),
  unwatch,
  align,
  reconcile,
  realign,
  suspend,
  settleIntake,
  reserve,
  release,
  expire,
  bind,
  closeHoles,
  findSkipped,
};
