/**
 * A signed transaction as its lane's owner keeps it: the row that the database acknowledged, and the steps that are on their
 * way there. The writes of a lane commit in the order in which they are planned, so a step may be planned on top of one that
 * is not durable yet; where one fails, the whole lane is read again.
 */
import type { Attempt } from "../transaction.ts";
import type { Status } from "../transitions.ts";
import { type Signing, signingOf } from "./bind.ts";
import type { Moved } from "./changes.ts";
import { heldAfter, highestAccepted, steppedAttempts, toldBy } from "./fold-transaction.ts";
import type { LedgerTransaction, TransactionDetails } from "./ledger.ts";
import type { TransitionItem } from "./writes.ts";

export interface TransactionRow
  extends Pick<TransactionDetails, "receipt" | "submitAttempts" | "lastError">,
    Pick<LedgerTransaction, "acceptedOrdinal"> {
  readonly status: Status;
  readonly attempts: readonly Attempt[];
  /** An operator holds it back. */
  readonly held: boolean;
  /** It is being cancelled because its `validUntil` is over. */
  readonly expired: boolean;
}

export interface KeptTransaction {
  readonly acknowledged: TransactionRow;
  /** Planned and not acknowledged yet, in the order in which they were planned. */
  readonly underWay: readonly TransitionItem[];
  /** As it stands once these are committed. */
  readonly expected: TransactionRow;
}

/** Allocated, and nothing of it signed or sent. */
export const UNSIGNED: TransactionRow = {
  status: { state: "ALLOCATED", subState: null },
  attempts: [],
  receipt: null,
  submitAttempts: 0,
  acceptedOrdinal: null,
  lastError: null,
  held: false,
  expired: false,
};

const NONE: readonly TransitionItem[] = [];

/** As it was read, with nothing under way. */
export function keptTransaction(row: TransactionRow): KeptTransaction {
  return { acknowledged: row, underWay: NONE, expected: row };
}

/** Allocated and signed in one write, which the database has acknowledged. */
export function boundTransaction(signing: Signing): KeptTransaction {
  return keptTransaction(stepped(UNSIGNED, signingOf(signing)));
}

/** A step is on its way to the database. */
export function stepPlanned(
  { acknowledged, underWay, expected }: KeptTransaction,
  item: TransitionItem,
): KeptTransaction {
  return { acknowledged, underWay: [...underWay, item], expected: stepped(expected, item) };
}

/** The database has taken the first of them. Throws where it was another one: memory and database differ then. */
export function stepAcknowledged(kept: KeptTransaction, { item }: Moved): KeptTransaction {
  const { acknowledged, underWay, expected } = kept;
  const first = underWay[0];
  if (first !== item)
    throw new Error(`${item.event} of ${item.txId} was committed before ${first?.event ?? "it left"}`);
  // What was expected is the same steps in the same order.
  if (underWay.length === 1) return keptTransaction(expected);
  return { acknowledged: stepped(acknowledged, item), underWay: underWay.slice(1), expected };
}

/** Field by field, as in `movedTransaction`: every step of every transaction makes one. */
function stepped(row: TransactionRow, item: TransitionItem): TransactionRow {
  const { receipt, submitAttempts, lastError } = toldBy(row, item);
  return {
    status: { state: item.to, subState: item.subState },
    attempts: steppedAttempts(row.attempts, item, asItIs),
    receipt,
    submitAttempts,
    acceptedOrdinal: highestAccepted(row.acceptedOrdinal, item),
    lastError,
    held: heldAfter(row.held || null, item, true) ?? false,
    expired: row.expired || item.expires === true,
  };
}

function asItIs(attempt: Attempt): Attempt {
  return attempt;
}
