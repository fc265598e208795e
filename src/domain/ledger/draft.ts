import type { ForeignUse } from "../cluster/notices.ts";
import type { Change } from "./changes.ts";
import { foldInto, type OwnLedger } from "./fold.ts";
import { actionKeyOf, type Ledger } from "./ledger.ts";
import type { ActionKey } from "./writes.ts";

/**
 * `at`: the time stored with changes. `past`: the time against which the expiry of reservations is checked. They may
 * differ slightly.
 */
export interface Moment {
  readonly at: Date;
  readonly past: Date;
}

/**
 * Collects the changes of one write while the ledger's rules are applied to it. It also has the state of the lane after
 * the changes so far.
 */
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
   * True if an action with this key (`Idempotency-Key`) was carried out before. The key is checked under the lane's
   * lock, and stored in the transaction that carries the action out. So a repeat finds the key and does nothing, even
   * on another node after a takeover or after a commit with an unknown outcome. Whether the earlier action was the same
   * one is not checked here, but by the code that sent the action.
   */
  isCarriedOut(actionKey: ActionKey | undefined): boolean {
    return actionKey !== undefined && this.ledger.actionKeys.get(actionKeyOf(actionKey)) !== null;
  }

  /** Records that the signer's key was used at these nonces by a transaction that Fencepost did not send. */
  noteUse(use: Pick<ForeignUse, "nonce" | "through"> & Partial<ForeignUse>): void {
    this.record({ kind: "usedElsewhere", txHash: null, txId: null, ...use, at: this.at });
  }

  keepActionKey(actionKey: ActionKey | undefined): void {
    if (actionKey !== undefined) this.record({ kind: "carriedOut", actionKey });
  }
}
