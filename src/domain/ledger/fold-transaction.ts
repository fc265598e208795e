import type { SignedAttempt } from "../transaction.ts";
import { TRANSITIONS } from "../transitions.ts";
import type { Allocated, Moved, Refused } from "./changes.ts";
import type { LedgerAttempt, LedgerTransaction, TransactionDetails } from "./ledger.ts";
import type { TransitionItem } from "./writes.ts";

const NO_ATTEMPTS: readonly LedgerAttempt[] = [];

/** Field by field: creates come by the hundred, and rows are quick to make and to read where they look alike. */
export function allocatedTransaction({ intent, nonce, intake, at }: Allocated): LedgerTransaction {
  return {
    txId: intent.txId,
    requestId: intent.requestId,
    nonce,
    live: true,
    state: "ALLOCATED",
    subState: null,
    lastEvent: "allocate",
    steps: intake === null ? 1 : 2,
    attemptCount: 0,
    acceptedOrdinal: null,
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
  const { txId, requestId, fingerprint, acceptedAt } = intake;
  const { state, subState } = TRANSITIONS[fate.event].to;
  return {
    ...{ txId, requestId, nonce: null, live: false, state, subState, lastEvent: fate.event, steps: 2 },
    ...{ attemptCount: 0, acceptedOrdinal: null, minedIn: null, fingerprint, attempts: NO_ATTEMPTS },
    details: unsent(acceptedAt, fate.reason),
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
    minedIn: receipt === undefined ? tx.minedIn : (receipt?.blockNumber ?? null),
    attempts: tx.attempts === undefined ? undefined : movedAttempts(tx.attempts, item, change.at),
    details: tx.details === undefined ? undefined : movedDetails(tx.details, change),
  };
}

function movedDetails(details: TransactionDetails, { item, at }: Moved): TransactionDetails {
  const { claim, receipt, lastError } = item;
  return {
    createdAt: details.createdAt,
    receipt: receipt === undefined ? details.receipt : receipt,
    submitAttempts: details.submitAttempts + (claim === undefined ? 0 : 1),
    lastSubmittedAt: claim === undefined ? details.lastSubmittedAt : at,
    lostSightAt: item.event === "loseSight" ? at : details.lostSightAt,
    lastError: lastError === undefined ? details.lastError : lastError,
  };
}

function movedAttempts(
  before: readonly LedgerAttempt[],
  { attempt, claim, identified }: TransitionItem,
  at: Date,
): readonly LedgerAttempt[] {
  if (attempt === undefined && claim === undefined && identified === undefined) return before;
  const all = attempt === undefined ? before : [...before, withoutBytes(attempt)];
  return all.map((each) => {
    const isSent = each.ordinal === claim?.ordinal && each.firstSentAt === null;
    const isNamed = each.ordinal === identified?.ordinal;
    if (!isSent && !isNamed) return each;
    return { ...each, ...(isSent ? { firstSentAt: at } : {}), ...(isNamed ? { txHash: identified.txHash } : {}) };
  });
}

/** The bytes stay with the change: who keeps a lane in memory keeps them only until they are sent. */
function withoutBytes({ rawTransaction: _, ...attempt }: SignedAttempt): LedgerAttempt {
  return { ...attempt, firstSentAt: null };
}
