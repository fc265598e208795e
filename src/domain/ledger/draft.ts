import type { ForeignUse } from "../cluster/notices.ts";
import type { Change } from "./changes.ts";
import { foldInto, type OwnLedger } from "./fold.ts";
import { type Ledger, orderKeyOf } from "./ledger.ts";
import type { OrderKey } from "./writes.ts";

/** Times of changes, and of reservations, which differ if time has passed between the two. */
export interface Moment {
  readonly at: Date;
  readonly past: Date;
}

/** A write that is being judged: the lane after everything recorded so far. */
export class Draft {
  readonly at: Date;
  readonly past: Date;
  readonly changes: Change[] = [];
  private readonly before: Ledger;
  private own: OwnLedger | null = null;

  constructor(ledger: Ledger, { at, past }: Moment) {
    this.before = ledger;
    this.at = at;
    this.past = past;
  }

  get ledger(): Ledger {
    return this.own ?? this.before;
  }

  record(change: Change): void {
    this.own ??= { ...this.before };
    foldInto(this.own, change);
    this.changes.push(change);
  }

  /**
   * True if an action with this key (`Idempotency-Key`) was carried out before. The key is checked behind the lane's
   * lock, and stored in the transaction that carries the action out: a repeat, also of another node after a takeover or
   * after a commit with an unknown outcome, finds its key and does nothing. The sender compares whether it was the same
   * action.
   */
  isCarriedOut(order: OrderKey | undefined): boolean {
    return order !== undefined && this.ledger.orders.get(orderKeyOf(order)) !== null;
  }

  /** The key was used at these nonces by a transaction that was not sent from here. */
  noteUse(use: Pick<ForeignUse, "nonce" | "through"> & Partial<ForeignUse>): void {
    this.record({ kind: "usedElsewhere", txHash: null, txId: null, ...use, at: this.at });
  }

  keepOrderKey(order: OrderKey | undefined): void {
    if (order !== undefined) this.record({ kind: "ordered", order });
  }
}
