import { attemptToSend } from "../../domain/attempts.ts";
import type { Hash } from "../../domain/lane.ts";
import { resumedPace, signedPace, type TransactionPace, takenBefore } from "../../domain/pace/transaction-pace.ts";
import { afterInterval } from "../../domain/pace/when.ts";
import type { Attempt, Receipt, SignedAttempt } from "../../domain/transaction.ts";
import type { State, Status } from "../../domain/transitions.ts";
import type { AllocatedRecord, TrackedRecord } from "../../ports/lane-store.ts";
import { happened } from "./happened.ts";

/** A signed transaction on its way, as its owner remembers it. The database holds the truth; this may be thrown away. */
export interface Tracked {
  readonly txId: string;
  readonly nonce: number;
  readonly requestId: string | null;
  readonly createdAt: Date;
  /** When sending it was first claimed; null: not known to have been. */
  firstSentAt: Date | null;
  /** Before this term: when a node took what is to be sent next, and when sight of it was lost. Null: neither is known. */
  readonly takenAt: Date | null;
  readonly lostSightAt: Date | null;
  status: Status;
  readonly attempts: Attempt[];
  receipt: Receipt | null;
  submitAttempts: number;
  /** The highest attempt that a node took. */
  acceptedOrdinal: number | null;
  lastError: string | null;
  /** When it is next sent, looked for or judged; changed by `happened` alone. */
  pace: TransactionPace;
  /** What stands in its way, for people: why, and since when. */
  readonly facts: Map<FactCode, Fact>;
}

/** What the lane's loop has found out about a transaction that does not get on. */
export const FACT_CODES = [
  /** More is wanted than the ceiling of its fee allows. */
  "FEE_CEILING_REACHED",
  /** As many payloads were signed as the settings allow; it is still tracked and sent. */
  "MAX_ATTEMPTS_REACHED",
  /** Its bytes cannot be signed again at another price. */
  "CANNOT_RESIGN",
  /** A nonce below it is held by nothing. */
  "NONCE_HOLE",
  /** The signer cannot pay for it. */
  "INSUFFICIENT_FUNDS",
  /** The hash that its caller, or the node that signs it, named is another transaction's. */
  "HASH_OF_ANOTHER",
  /** Called impossible more than once, and taken by no node ever. */
  "REFUSED_FOR_GOOD",
] as const;
export type FactCode = (typeof FACT_CODES)[number];

export interface Fact {
  readonly text: string;
  readonly since: Date;
}

/** `rejected` once may be one node's mood; again, and by nobody taken, it is for good. */
const REJECTIONS_FOR_GOOD = 2;

/** No node will ever take it as it is: whoever repairs holes may act on it. */
export function isRefusedForGood(tx: Tracked): boolean {
  return tx.acceptedOrdinal === null && tx.pace.rejections >= REJECTIONS_FOR_GOOD;
}

/** A node that signed it has said, or was found out to have made, this transaction of it. */
export function identify(tx: Tracked, ordinal: number, txHash: Hash): void {
  const index = tx.attempts.findIndex((attempt) => attempt.ordinal === ordinal);
  const attempt = tx.attempts[index];
  if (attempt !== undefined) tx.attempts[index] = { ...attempt, txHash };
}

/** Sets a fact once; true where it is new. */
export function establish(tx: Tracked, code: FactCode, fact: Fact): boolean {
  if (tx.facts.has(code)) return false;
  tx.facts.set(code, fact);
  return true;
}

/** Signed a moment ago, with the claim to send it. */
export function signed(record: AllocatedRecord, attempt: SignedAttempt): Tracked {
  return {
    txId: record.txId,
    nonce: record.nonce,
    requestId: record.requestId,
    createdAt: record.createdAt,
    firstSentAt: null,
    takenAt: null,
    lostSightAt: null,
    status: { state: "ALLOCATED", subState: null },
    attempts: [...(record.attempts ?? []), attempt],
    receipt: null,
    submitAttempts: 1,
    acceptedOrdinal: null,
    lastError: null,
    pace: signedPace(attempt.ordinal, attempt.rawTransaction),
    facts: new Map(),
  };
}

/**
 * A row as a new owner finds it: its receipt is looked for first. Where no node is known to have taken its newest bytes,
 * they are sent then; a node that has them calls them known.
 */
export function resumed(record: TrackedRecord): Tracked {
  const sendOrdinal = attemptToSend(record.attempts)?.ordinal ?? null;
  return {
    txId: record.txId,
    nonce: record.nonce,
    requestId: record.requestId,
    createdAt: record.createdAt,
    firstSentAt: record.firstSentAt,
    takenAt: isTakenAsItIs(record, sendOrdinal) ? record.lastSubmittedAt : null,
    lostSightAt: record.lostSightAt ?? null,
    status: { state: record.state, subState: record.subState },
    attempts: [...record.attempts],
    receipt: record.receipt,
    submitAttempts: record.submitAttempts,
    acceptedOrdinal: record.acceptedOrdinal,
    lastError: record.lastError,
    pace: resumedPace(sendOrdinal, record.receipt !== null),
    facts: new Map(),
  };
}

/** A node took the newest bytes, nothing was heard against them since, and they wait for a block: not for being sent. */
function isTakenAsItIs(record: TrackedRecord, sendOrdinal: number | null): boolean {
  const { state, subState, acceptedOrdinal, lastError } = record;
  const waits = state === "STUCK" || subState === "BROADCAST" || subState === "STALE";
  return waits && sendOrdinal !== null && lastError === null && (acceptedOrdinal ?? 0) >= sendOrdinal;
}

/** What is STUCK is sent again all the same, but nobody expects it to help. */
const STUCK_PACE = 10;

/** How long after a send the same bytes are due again; null: never by age. */
export function resubmitEveryMs(intervalMs: number | null, state: State): number | null {
  return intervalMs === null || state !== "STUCK" ? intervalMs : intervalMs * STUCK_PACE;
}

/**
 * What the owner before had a node take is due when it would have been there: an interval after it was last sent. A lane
 * that changes hands does not send everything again.
 */
export function keepPace(tx: Tracked, { nowMs, now }: { nowMs: number; now: Date }, everyMs: number | null): void {
  if (tx.takenAt === null || tx.receipt !== null) return;
  const ageMs = Math.max(0, now.getTime() - tx.takenAt.getTime());
  happened(tx, takenBefore, afterInterval(nowMs, everyMs === null ? null : Math.max(0, everyMs - ageMs)));
}

/** One that waits to be signed, for a step that leaves it there. */
export function queued(record: Pick<AllocatedRecord, "txId" | "nonce" | "requestId" | "createdAt">): Tracked {
  const { txId, nonce, requestId, createdAt } = record;
  const never = { submitAttempts: 0, firstSentAt: null, lastSubmittedAt: null, acceptedOrdinal: null } as const;
  const status = { state: "ALLOCATED", subState: null, attempts: [], receipt: null, lastError: null } as const;
  return resumed({ txId, nonce, requestId, createdAt, ...status, ...never });
}
