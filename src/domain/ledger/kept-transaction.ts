/**
 * A signed transaction in its owner's memory: the row as the database acknowledged it, and the steps in flight. The
 * writes of a lane commit in the order in which they are planned, so a step may be planned before an earlier one is
 * durable. If one fails, the whole lane is reloaded.
 */
import type { Attempt } from "../transaction/transaction.ts";
import { type Signing, signingOf } from "./bind.ts";
import type { Moved } from "./changes.ts";
import { type Stepped, stepped } from "./fold-transaction.ts";
import type { StepDetails } from "./ledger.ts";
import type { TransitionItem } from "./writes.ts";

/**
 * A transaction in its owner's memory. Its times come from the database, so a step that is not committed yet has none:
 * instead of a time, only the fact that it happened is stored.
 */
export interface TransactionRow extends Stepped<true, Attempt> {
  readonly attempts: readonly Attempt[];
  readonly details: StepDetails;
}

export interface KeptTransaction {
  readonly acknowledged: TransactionRow;
  /** Steps that are planned but not yet acknowledged by the database, in the order in which they were planned. */
  readonly underWay: readonly TransitionItem[];
  /** State of the transaction once the steps of `underWay` are committed. */
  readonly expected: TransactionRow;
}

/** A transaction that is allocated, with no attempt signed or sent. */
export const UNSIGNED: TransactionRow = {
  state: "ALLOCATED",
  subState: null,
  acceptedOrdinal: null,
  heldSince: null,
  expiredAt: null,
  attempts: [],
  details: { receipt: null, submitAttempts: 0, lastError: null },
};

const KEEPING = { at: true, keep: (attempt: Attempt) => attempt } as const;

const NONE: readonly TransitionItem[] = [];

/** Makes the in-memory record of a transaction as it was read from the database: no step is in flight. */
export function keptTransaction(row: TransactionRow): KeptTransaction {
  return { acknowledged: row, underWay: NONE, expected: row };
}

/**
 * Makes the in-memory record of a transaction that was allocated and signed in one write, which the database has
 * acknowledged.
 */
export function boundTransaction(signing: Signing): KeptTransaction {
  return keptTransaction(stepped(UNSIGNED, signingOf(signing), KEEPING));
}

/** Adds a planned step, which is being written to the database. */
export function stepPlanned(
  { acknowledged, underWay, expected }: KeptTransaction,
  item: TransitionItem,
): KeptTransaction {
  return { acknowledged, underWay: [...underWay, item], expected: stepped(expected, item, KEEPING) };
}

/**
 * Called when the database has committed the first planned step. Throws if it committed a different one: then memory
 * and database differ.
 */
export function stepAcknowledged(kept: KeptTransaction, { item }: Moved): KeptTransaction {
  const { acknowledged, underWay, expected } = kept;
  const first = underWay[0];
  if (first !== item)
    throw new Error(`${item.event} of ${item.txId} was committed out of order; expected ${first?.event ?? "nothing"}`);
  // No other step is in flight, so `expected` is now exactly what the database has.
  if (underWay.length === 1) return keptTransaction(expected);
  return { acknowledged: stepped(acknowledged, item, KEEPING), underWay: underWay.slice(1), expected };
}
