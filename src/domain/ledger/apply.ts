import { allocate } from "./allocate.ts";
import { bind } from "./bind.ts";
import type { Change } from "./changes.ts";
import { Draft, type Moment } from "./draft.ts";
import type { Ledger } from "./ledger.ts";
import { settleMessage, signMessage } from "./messages.ts";
import { move } from "./move.ts";
import { expire, release, reserve } from "./reserve.ts";
import { settleIntake } from "./settle-intake.ts";
import { align, closeHoles, findSkipped, realign, reconcile, suspend, unwatch } from "./standing.ts";
import type { LedgerOutcome, LedgerWrite } from "./writes.ts";

export interface Applied {
  readonly ledger: Ledger;
  readonly outcome: LedgerOutcome;
  /** Changes that a store must persist. Empty: there is nothing to persist. */
  readonly changes: readonly Change[];
}

/**
 * Applies the ledger's rules to a write at time `at` of the database's clock. The caller has already checked that the
 * writer owns the lane. Throws `NotLoaded` if the ledger lacks a row that the write concerns, `BatchRefused` if the
 * write is a programming error.
 */
export function apply(ledger: Ledger, write: LedgerWrite, at: Date | Moment): Applied {
  const { chainId, signer } = write.fence.lane;
  const isOwn = chainId === ledger.lane.chainId && signer === ledger.lane.signer;
  if (!isOwn) throw new Error("the write is for another lane than this ledger");
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
  signMessage,
  settleMessage,
};

/**
 * Returns the order in which the writes of one commit are applied, as indexes: the order of arrival, but `unwatch`
 * last. If a reorg in the same commit changes a transaction, that transaction must still be watched.
 */
export function inOrder(writes: readonly { readonly kind: string }[]): readonly number[] {
  const endsWatch = ({ kind }: { readonly kind: string }) => Number(kind === "unwatch");
  return [...writes.entries()].sort(([, a], [, b]) => endsWatch(a) - endsWatch(b)).map(([place]) => place);
}

/**
 * Records a notice if the chain's proven transaction count passed nonces that this lane never gave: another program
 * signs with this key. The notice is written in the same commit as the count.
 */
function notePassedOver(draft: Draft, write: LedgerWrite, before: number | null) {
  const floor = floorOf(write);
  const cursor = draft.ledger.cursor ?? 0;
  if (before !== null && floor > before && cursor > before) draft.noteUse({ nonce: before, through: floor - 1 });
}

/**
 * The proven transaction count of the chain that a write carries; 0 for other writes. `reconcile` is excluded: after a
 * restore the database may lack transactions that Fencepost itself sent.
 */
function floorOf(write: LedgerWrite) {
  if (write.kind === "bind") return write.chosen?.floor ?? 0;
  const isWithCount = write.kind === "allocate" || write.kind === "reserve" || write.kind === "align";
  return isWithCount ? (write.floor ?? 0) : 0;
}
