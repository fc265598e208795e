import type { Change } from "./changes.ts";
import { foldOne } from "./fold.ts";
import type { Ledger } from "./ledger.ts";

/** A write that is being judged: the lane as it stands after what was recorded so far. */
export class Draft {
  ledger: Ledger;
  readonly at: Date;
  readonly changes: Change[] = [];

  constructor(ledger: Ledger, at: Date) {
    this.ledger = ledger;
    this.at = at;
  }

  record(change: Change): void {
    this.ledger = foldOne(this.ledger, change);
    this.changes.push(change);
  }
}
