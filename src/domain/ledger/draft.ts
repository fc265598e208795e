import type { Change } from "./changes.ts";
import { foldInto, type OwnLedger } from "./fold.ts";
import type { Ledger } from "./ledger.ts";

/** What changes are dated with, and what reservations are judged by, where time has gone by between the two. */
export interface Moment {
  readonly at: Date;
  readonly past: Date;
}

/** A write that is being judged: the lane as it stands after what was recorded so far. */
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
}
