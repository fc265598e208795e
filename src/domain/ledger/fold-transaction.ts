import type { Attempt, SignedAttempt } from "../transaction.ts";
import { isSettled, TRANSITIONS } from "../transitions.ts";
import type { Allocated, Awaits, Moved, Refused } from "./changes.ts";
import { type LedgerAttempt, type LedgerTransaction, stepsOf, type TransactionDetails } from "./ledger.ts";
import type { TransitionItem } from "./writes.ts";

const NO_ATTEMPTS: readonly LedgerAttempt[] = [];

/** Field by field: creates come by the hundred, and rows are quick to make and to read where they look alike. */
export function allocatedTransaction({ intent, nonce, intake, at }: Allocated): LedgerTransaction {
  return {
    txId: intent.txId,
    requestId: intent.requestId,
    owner: intent.owner,
    nonce,
    live: true,
    state: "ALLOCATED",
    subState: null,
    lastEvent: "allocate",
    steps: intake === null ? 1 : stepsOf(intake) + 1,
    attemptCount: 0,
    pinned: intent.exactNonce !== undefined,
    acceptedOrdinal: null,
    validUntil: intent.validUntil ?? null,
    heldSince: null,
    expiredAt: null,
    minedIn: null,
    fingerprint: intent.fingerprint,
    attempts: NO_ATTEMPTS,
    details: unsent(intake?.acceptedAt ?? at, null),
  };
}

function unsent(createdAt: Date, lastError: string | null): TransactionDetails {
  return { createdAt, receipt: null, submitAttempts: 0, lastSubmittedAt: null, lostSightAt: null, lastError };
}

export function refusedTransaction({ intake, fate }: Refused): LedgerTransaction {
  const { txId, requestId, owner, fingerprint, acceptedAt, validUntil = null } = intake;
  const { state, subState } = TRANSITIONS[fate.event].to;
  return {
    ...{
      txId,
      requestId,
      owner,
      nonce: null,
      live: false,
      state,
      subState,
      lastEvent: fate.event,
      steps: stepsOf(intake) + 1,
    },
    ...{ attemptCount: 0, pinned: false, acceptedOrdinal: null, validUntil, heldSince: null, expiredAt: null },
    ...{ minedIn: null, fingerprint, attempts: NO_ATTEMPTS },
    details: unsent(acceptedAt, fate.reason),
  };
}

/** One that has no nonce, and is nobody's to follow yet. */
export function awaitingTransaction({ intent, intake, approval, at }: Awaits): LedgerTransaction {
  const { txId, requestId, owner, fingerprint, validUntil = null } = intent;
  return {
    ...{ txId, requestId, owner, nonce: null, live: false, ...TRANSITIONS.await.to, lastEvent: "await" },
    ...{ steps: stepsOf({ ...intake, approval }), attemptCount: 0, acceptedOrdinal: null, minedIn: null },
    ...{ pinned: false, validUntil, heldSince: null, expiredAt: null },
    ...{ fingerprint, attempts: NO_ATTEMPTS, details: unsent(intake?.acceptedAt ?? at, null) },
  };
}

export function movedTransaction(tx: LedgerTransaction, change: Moved): LedgerTransaction {
  const { item, nonce, live, step, attemptCount, acceptedOrdinal } = change;
  const { receipt } = item;
  return {
    ...tx,
    state: item.to,
    subState: item.subState,
    nonce,
    live,
    lastEvent: item.event,
    steps: step,
    attemptCount,
    acceptedOrdinal,
    heldSince: heldAfter(tx.heldSince, item, change.at),
    expiredAt: item.expires === true ? change.at : tx.expiredAt,
    minedIn: receipt === undefined ? tx.minedIn : (receipt?.blockNumber ?? null),
    attempts: tx.attempts === undefined ? undefined : movedAttempts(tx.attempts, item, change.at),
    details: tx.details === undefined ? undefined : movedDetails(tx.details, change),
  };
}

/** What `hold` and `unhold` make of it. With its outcome it is over: nobody could let go what is final, were it reorganised away. */
export function heldAfter<At>(before: At | null, { event, to }: TransitionItem, at: At): At | null {
  if (isSettled(to)) return null;
  if (event === "hold") return before ?? at;
  return event === "unhold" ? null : before;
}

function movedDetails(details: TransactionDetails, { item, at }: Moved): TransactionDetails {
  const { receipt, submitAttempts, lastError } = toldBy(details, item);
  return {
    createdAt: details.createdAt,
    receipt,
    submitAttempts,
    lastSubmittedAt: item.claim === undefined ? details.lastSubmittedAt : at,
    lostSightAt: item.event === "loseSight" ? at : details.lostSightAt,
    lastError,
  };
}

function movedAttempts(before: readonly LedgerAttempt[], item: TransitionItem, at: Date): readonly LedgerAttempt[] {
  const { claim } = item;
  const all = steppedAttempts(before, item, unsentAttempt);
  if (claim === undefined) return all;
  return all.map((each) =>
    each.ordinal === claim.ordinal && each.firstSentAt === null ? { ...each, firstSentAt: at } : each,
  );
}

function unsentAttempt(attempt: Attempt): LedgerAttempt {
  return { ...attempt, firstSentAt: null };
}

type Told = Pick<TransactionDetails, "receipt" | "submitAttempts" | "lastError">;

/** What a step brings with it, and what it leaves as it was. */
export function toldBy(before: Told, { claim, receipt, lastError }: TransitionItem): Told {
  return {
    receipt: receipt === undefined ? before.receipt : receipt,
    submitAttempts: before.submitAttempts + (claim === undefined ? 0 : 1),
    lastError: lastError === undefined ? before.lastError : lastError,
  };
}

/** `keep`: how a new one is kept, less its bytes: these stay with the change, and in memory only until they are sent. */
export function steppedAttempts<A extends Attempt>(
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

function publicly<A extends Attempt>({ private: _, ...attempt }: A): A {
  return attempt as A;
}

function withoutBytes({ rawTransaction: _, ...attempt }: SignedAttempt): Attempt {
  return attempt;
}

/** A row keeps the highest attempt that a node took. */
export function highestAccepted(before: number | null, { accepted }: TransitionItem): number | null {
  return accepted === undefined ? before : Math.max(before ?? 0, accepted.ordinal);
}
