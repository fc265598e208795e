import type { SignedAttempt } from "../transaction.ts";
import type { Allocated, Moved, Refused } from "./changes.ts";
import type { LedgerAttempt, LedgerTransaction, TransactionDetails } from "./ledger.ts";
import type { TransitionItem } from "./writes.ts";

const UNSENT = { receipt: null, submitAttempts: 0, lastSubmittedAt: null, lostSightAt: null } as const;

export function allocatedTransaction({ intent, nonce, intake, at }: Allocated): LedgerTransaction {
  const { txId, requestId, fingerprint } = intent;
  const createdAt = intake?.acceptedAt ?? at;
  return {
    ...{ txId, requestId, nonce, fingerprint, live: true, state: "ALLOCATED", subState: null, lastEvent: "allocate" },
    ...{ steps: intake === null ? 1 : 2, attemptCount: 0, acceptedOrdinal: null, minedIn: null, attempts: [] },
    details: { ...UNSENT, createdAt, lastError: null },
  };
}

export function refusedTransaction({ intake, fate }: Refused): LedgerTransaction {
  const { txId, requestId, fingerprint, acceptedAt } = intake;
  const subState = fate.event === "refuse" ? "REJECTED" : "REQUEST_ID_REUSED";
  return {
    ...{ txId, requestId, nonce: null, fingerprint, live: false, state: "FAILED_FINAL", subState },
    ...{ lastEvent: fate.event, steps: 2, attemptCount: 0, acceptedOrdinal: null, minedIn: null, attempts: [] },
    details: { ...UNSENT, createdAt: acceptedAt, lastError: fate.reason },
  };
}

export function movedTransaction(tx: LedgerTransaction, change: Moved): LedgerTransaction {
  const { item, nonce, live, step } = change;
  const { accepted, attempt, receipt } = item;
  return {
    ...tx,
    state: item.to,
    subState: item.subState,
    nonce,
    live,
    lastEvent: item.event,
    steps: step,
    attemptCount: tx.attemptCount + (attempt === undefined ? 0 : 1),
    acceptedOrdinal: accepted === undefined ? tx.acceptedOrdinal : Math.max(tx.acceptedOrdinal ?? 0, accepted.ordinal),
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
  const all = attempt === undefined ? before : [...before, unsent(attempt)];
  return all.map((each) => {
    const isSent = each.ordinal === claim?.ordinal && each.firstSentAt === null;
    const isNamed = each.ordinal === identified?.ordinal;
    if (!isSent && !isNamed) return each;
    return { ...each, ...(isSent ? { firstSentAt: at } : {}), ...(isNamed ? { txHash: identified.txHash } : {}) };
  });
}

/** The bytes stay with the change: who keeps a lane in memory keeps them only until they are sent. */
function unsent({ rawTransaction: _, ...attempt }: SignedAttempt): LedgerAttempt {
  return { ...attempt, firstSentAt: null };
}
