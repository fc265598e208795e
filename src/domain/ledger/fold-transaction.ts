import type { Attempt, SignedAttempt } from "../transaction/transaction.ts";
import { isSettled, type Status, TRANSITIONS, type TransitionEvent } from "../transaction/transitions.ts";
import type { Allocated, Awaits, Moved, Refused } from "./changes.ts";
import {
  type LedgerAttempt,
  type LedgerTransaction,
  type StepDetails,
  stepsOf,
  type TransactionDetails,
  type WaitingIntent,
} from "./ledger.ts";
import type { TransitionItem } from "./writes.ts";

const NO_ATTEMPTS: readonly LedgerAttempt[] = [];

type Begun = Pick<WaitingIntent, "txId" | "requestId" | "owner" | "fingerprint" | "validUntil">;

type Standing = Pick<LedgerTransaction, "steps" | "details"> &
  Partial<Pick<LedgerTransaction, "nonce" | "live" | "pinned">>;

/**
 * Creates the first row of a transaction. Until it has a nonce, the lane's owner does not keep it in memory. Written as
 * one object literal: spreading and overriding took a hundred times as long.
 */
export function begunTransaction(
  { txId, requestId, owner, fingerprint, validUntil }: Begun,
  lastEvent: TransitionEvent,
  { nonce = null, live = false, steps, pinned = false, details }: Standing,
): LedgerTransaction {
  const { state, subState } = TRANSITIONS[lastEvent].to as Status;
  return {
    txId,
    requestId,
    owner,
    nonce,
    live,
    state,
    subState,
    lastEvent,
    steps,
    attemptCount: 0,
    pinned,
    acceptedOrdinal: null,
    validUntil: validUntil ?? null,
    heldSince: null,
    expiredAt: null,
    minedIn: null,
    fingerprint,
    attempts: NO_ATTEMPTS,
    details,
  };
}

export function allocatedTransaction({ intent, nonce, intake, at }: Allocated): LedgerTransaction {
  return begunTransaction(intent, "allocate", {
    nonce,
    live: true,
    steps: intake === null ? 1 : stepsOf(intake) + 1,
    pinned: intent.exactNonce !== undefined,
    details: unsent(intake?.acceptedAt ?? at, null),
  });
}

function unsent(createdAt: Date, lastError: string | null): TransactionDetails {
  return { createdAt, receipt: null, submitAttempts: 0, lastSubmittedAt: null, lostSightAt: null, lastError };
}

export function refusedTransaction({ intake, result }: Refused): LedgerTransaction {
  const details = unsent(intake.acceptedAt, result.reason);
  return begunTransaction(intake, result.event, { steps: stepsOf(intake) + 1, details });
}

export function awaitingTransaction({ intent, intake, approval, at }: Awaits): LedgerTransaction {
  const details = unsent(intake?.acceptedAt ?? at, null);
  return begunTransaction(intent, "await", { steps: stepsOf({ ...intake, approval }), details });
}

/**
 * The fields of a transaction that only its own steps change. `At`: the type used for times, either a date or just
 * `true` for "has happened".
 */
export interface Stepped<At, A extends Attempt> extends Status {
  readonly acceptedOrdinal: number | null;
  readonly heldSince: At | null;
  readonly expiredAt: At | null;
  readonly attempts: readonly A[] | undefined;
  readonly details: StepDetails | undefined;
}

/** `at`: time of the step. `keep`: function that converts a new attempt to its stored form. */
interface Keeping<At, A extends Attempt> {
  readonly at: At;
  readonly keep: (attempt: Attempt) => A;
}

/**
 * Applies one step to a transaction, either in the ledger or in the owner's memory. Written as one object literal: if
 * objects of several shapes are spread at one place, V8 copies them a hundred times slower.
 */
export function stepped<At, A extends Attempt, Row extends Stepped<At, A>>(
  row: Row & Stepped<At, A>,
  item: TransitionItem,
  { at, keep }: Keeping<At, A>,
) {
  return {
    state: item.to,
    subState: item.subState,
    acceptedOrdinal: highestAccepted(row.acceptedOrdinal, item),
    heldSince: heldAfter(row.heldSince, item, at),
    expiredAt: item.expires === true ? at : row.expiredAt,
    attempts: row.attempts && steppedAttempts(row.attempts, item, keep),
    details: row.details && steppedDetails(row.details, item),
  } as Pick<Row, keyof Stepped<At, A>>;
}

export function movedTransaction(tx: LedgerTransaction, change: Moved): LedgerTransaction {
  const { item, nonce, live, step, attemptCount, at } = change;
  const { receipt, event } = item;
  const row = stepped(tx, item, { at, keep: unsentAttempt });
  return {
    ...tx,
    nonce,
    live,
    state: row.state,
    subState: row.subState,
    lastEvent: event,
    steps: step,
    attemptCount,
    acceptedOrdinal: row.acceptedOrdinal,
    heldSince: row.heldSince,
    expiredAt: row.expiredAt,
    minedIn: receipt === undefined ? tx.minedIn : (receipt?.blockNumber ?? null),
    attempts: row.attempts && sentAttempts(row.attempts, item, at),
    details: tx.details && row.details && movedDetails(tx.details, row.details, change),
  };
}

function unsentAttempt(attempt: Attempt): LedgerAttempt {
  return { ...attempt, firstSentAt: null };
}

function movedDetails(details: TransactionDetails, step: StepDetails, { item, at }: Moved): TransactionDetails {
  return {
    createdAt: details.createdAt,
    receipt: step.receipt,
    submitAttempts: step.submitAttempts,
    lastSubmittedAt: item.claim === undefined ? details.lastSubmittedAt : at,
    lostSightAt: item.event === "loseSight" ? at : details.lostSightAt,
    lastError: step.lastError,
  };
}

/**
 * An operator's hold ends when the transaction is settled. Otherwise a reorg that undoes the outcome would put it in
 * force again, although nobody can release the hold of a final transaction.
 */
function heldAfter<At>(before: At | null, { event, to }: TransitionItem, at: At): At | null {
  if (isSettled(to)) return null;
  if (event === "hold") return before ?? at;
  return event === "unhold" ? null : before;
}

/**
 * Sets the time at which the right to send an attempt was first stored: from that time on, the network may know the
 * attempt.
 */
function sentAttempts(all: readonly LedgerAttempt[], { claim }: TransitionItem, at: Date): readonly LedgerAttempt[] {
  if (claim === undefined) return all;
  return all.map((each) =>
    each.ordinal === claim.ordinal && each.firstSentAt === null ? { ...each, firstSentAt: at } : each,
  );
}

function steppedDetails(before: StepDetails, { claim, receipt, lastError }: TransitionItem): StepDetails {
  return {
    receipt: receipt === undefined ? before.receipt : receipt,
    submitAttempts: before.submitAttempts + (claim === undefined ? 0 : 1),
    lastError: lastError === undefined ? before.lastError : lastError,
  };
}

/**
 * The attempts of a transaction after a step. A new attempt is kept here without its signed bytes: these are persisted
 * with the change, and are in memory only until they are sent.
 */
function steppedAttempts<A extends Attempt>(
  before: readonly A[],
  { attempt, identified, disclosed }: TransitionItem,
  keep: (attempt: Attempt) => A,
): readonly A[] {
  const stored = attempt === undefined ? before : [...before, keep(withoutBytes(attempt))];
  const all = disclosed === true ? stored.map(publicly) : stored;
  if (identified === undefined) return all;
  const { ordinal, txHash } = identified;
  return all.map((each) => (each.ordinal === ordinal ? { ...each, txHash } : each));
}

function publicly<A extends Attempt>({ private: _, ...attempt }: A) {
  return attempt as A;
}

function withoutBytes({ rawTransaction: _, ...attempt }: SignedAttempt): Attempt {
  return attempt;
}

/** Number of the highest attempt that an RPC node has accepted, after this step. */
export function highestAccepted(before: number | null, { accepted }: TransitionItem): number | null {
  return accepted === undefined ? before : Math.max(before ?? 0, accepted.ordinal);
}
