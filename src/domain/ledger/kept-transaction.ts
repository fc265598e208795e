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
 * A transaction in its owner's memory. Times come from the database, so a planned step has none yet: only the fact that
 * it happened is stored.
 */
export interface TransactionRow extends Stepped<true, Attempt> {
  readonly attempts: readonly Attempt[];
  readonly details: StepDetails;
}

export interface KeptTransaction {
  readonly acknowledged: TransactionRow;
  /** Steps that are planned and not acknowledged yet, in the order in which they were planned. */
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

/** A transaction in memory, as the database has it: no step is in flight. */
export function keptTransaction(row: TransactionRow): KeptTransaction {
  return { acknowledged: row, underWay: NONE, expected: row };
}

/** A transaction that was allocated and signed in one write, which the database has acknowledged. */
export function boundTransaction(signing: Signing): KeptTransaction {
  return keptTransaction(stepped(UNSIGNED, signingOf(signing), KEEPING));
}

/** Adds a step that is on its way to the database. */
export function stepPlanned(
  { acknowledged, underWay, expected }: KeptTransaction,
  item: TransitionItem,
): KeptTransaction {
  return { acknowledged, underWay: [...underWay, item], expected: stepped(expected, item, KEEPING) };
}

/**
 * The database has accepted the first step in flight. Throws if it accepted a different one: then memory and database
 * differ.
 */
export function stepAcknowledged(kept: KeptTransaction, { item }: Moved): KeptTransaction {
  const { acknowledged, underWay, expected } = kept;
  const first = underWay[0];
  if (first !== item)
    throw new Error(`${item.event} of ${item.txId} was committed out of order; expected ${first?.event ?? "nothing"}`);
  // This was the last step in flight, so `expected` has exactly the acknowledged steps.
  if (underWay.length === 1) return keptTransaction(expected);
  return { acknowledged: stepped(acknowledged, item, KEEPING), underWay: underWay.slice(1), expected };
}
