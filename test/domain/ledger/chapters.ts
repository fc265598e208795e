import {
  apply,
  type Change,
  type Ledger,
  type LedgerOutcome,
  type LedgerWrite,
} from "../../../src/domain/ledger/index.ts";
import { BatchRefused } from "../../../src/ports/lane-store.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { type Happening, LANE, WriteMaker } from "./story.ts";

export interface Chapter {
  readonly write: LedgerWrite;
  readonly before: Ledger;
  readonly after: Ledger;
  readonly outcome: LedgerOutcome;
  readonly changes: readonly Change[];
  readonly at: Date;
}

/**
 * Every write of a random sequence with the ledger's result. Ends before the first write that makes the ledger throw.
 */
export function* chaptersOf(happenings: readonly Happening[]): IterableIterator<Chapter> {
  const maker = new WriteMaker();
  let ledger = newLedger(LANE);
  for (const happening of happenings) {
    const write = maker.make(ledger, happening);
    if (write === null) continue;
    const before = maker.loaded(ledger);
    const applied = unlessMistaken(() => apply(before, write, maker.now));
    if (applied === null) return;
    yield { write, before, after: applied.ledger, ...applied, at: maker.now };
    ledger = applied.ledger;
    maker.took(ledger);
  }
}

export function unlessMistaken<T>(act: () => T): T | null {
  try {
    return act();
  } catch (error) {
    if (error instanceof BatchRefused) return null;
    throw error;
  }
}
