import type { Change } from "./changes.ts";
import { foldOne } from "./fold.ts";
import type { Ledger } from "./ledger.ts";

/** A write that is being judged: the lane as it stands after what was recorded so far. */
export class Draft {
  ledger: Ledger;
  readonly at: Date;
  readonly past: Date;
  readonly changes: Change[] = [];

  constructor(ledger: Ledger, at: Date, past: Date) {
    this.ledger = ledger;
    this.at = at;
    this.past = past;
  }

  record(change: Change): void {
    this.ledger = foldOne(this.ledger, change);
    this.changes.push(change);
  }
}
