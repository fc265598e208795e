import { type KeptTransaction, keptTransaction, type TransactionRow, UNSIGNED } from "../../domain/ledger/index.ts";
import {
  isSendDue,
  resumedPace,
  signedPace,
  type TransactionPace,
  takenBefore,
} from "../../domain/pace/transaction-pace.ts";
import { afterInterval } from "../../domain/pace/when.ts";
import { attemptToSend } from "../../domain/transaction/attempts.ts";
import type { Attempt, Receipt, SignedAttempt, UnsignedTransaction } from "../../domain/transaction/transaction.ts";
import type { State, Status } from "../../domain/transaction/transitions.ts";
import type { DecodedTransaction } from "../../ports/codec.ts";
import type { AllocatedRecord, TrackedRecord } from "../../ports/lane-store.ts";
import type { LanePorts } from "./lane-ports.ts";

/** Facts about a transaction when its owner begins to follow it, which do not change meanwhile. */
interface Known extends Pick<TrackedRecord, "txId" | "nonce" | "requestId" | "createdAt" | "validUntil"> {
  /** When sending it was first claimed. */
  readonly firstSentAt?: Date | null;
  /** Before this term: when a node took what is to be sent next, and when sight of it was lost. */
  readonly takenAt?: Date | null;
  readonly lostSightAt?: Date | undefined;
}

/** A signed transaction on its way, as its owner remembers it. The database holds the truth; this may be thrown away. */
export class Tracked {
  readonly txId;
  readonly nonce;
  readonly requestId;
  readonly createdAt;
  /** Set by the caller; null: it set none. */
  readonly validUntil;
  /** First claim of a send, in any term; null: none is known. */
  readonly firstSentAt;
  /** Last send of the newest bytes, if a node accepted them before this term; null: not known. */
  readonly takenAt;
  readonly lostSightAt;
  private row;
  /** When it is next sent, looked for or judged; changed by `happened` alone. */
  pace;
  /** Obstacles of the transaction, for people: why, and since when. */
  readonly facts = new Map<FactCode, Fact>();

  constructor(known: Known, row: KeptTransaction, pace: TransactionPace) {
    this.txId = known.txId;
    this.nonce = known.nonce;
    this.requestId = known.requestId;
    this.createdAt = known.createdAt;
    this.validUntil = known.validUntil ?? null;
    this.firstSentAt = known.firstSentAt ?? null;
    this.takenAt = known.takenAt ?? null;
    this.lostSightAt = known.lostSightAt ?? null;
    this.row = row;
    this.pace = pace;
  }

  /** The only place that changes the row: by a planned or an acknowledged step. */
  stands<Step>(after: (row: KeptTransaction, step: Step) => KeptTransaction, step: Step): void {
    this.row = after(this.row, step);
  }

  /** The acknowledged row. */
  get acknowledged(): TransactionRow {
    return this.row.acknowledged;
  }

  get status(): Status {
    const { state, subState } = this.row.expected;
    return { state, subState };
  }

  get attempts(): readonly Attempt[] {
    return this.row.expected.attempts;
  }

  get receipt(): Receipt | null {
    return this.row.expected.details.receipt;
  }

  get submitAttempts(): number {
    return this.row.expected.details.submitAttempts;
  }

  /** The highest attempt that a node took. */
  get acceptedOrdinal(): number | null {
    return this.row.expected.acceptedOrdinal;
  }

  get lastError(): string | null {
    return this.row.expected.details.lastError;
  }

  /** An operator holds it back: nothing of it is sent, signed or judged by itself. */
  get held(): boolean {
    return this.row.expected.heldSince !== null;
  }

  /** The transaction is being cancelled because its `validUntil` is over. */
  get expired(): boolean {
    return this.row.expected.expiredAt !== null;
  }
}

/** Findings of the lane's loop about a transaction that does not progress. */
export type FactCode =
  /** More is wanted than the ceiling of its fee allows. */
  | "FEE_CEILING_REACHED"
  /** A policy does not allow it to cost more. */
  | "POLICY_LIMIT_REACHED"
  /** The allowed number of payloads is signed; it is still tracked and sent. */
  | "MAX_ATTEMPTS_REACHED"
  /** Its bytes cannot be signed again at another price. */
  | "CANNOT_RESIGN"
  /** A node took it, it was sent again as often as the settings allow, and no block has it. */
  | "RESENT_OFTEN"
  /** A nonce below it is held by nothing. */
  | "NONCE_HOLE"
  /** The signer cannot pay for it. */
  | "INSUFFICIENT_FUNDS"
  /** The hash that its caller, or the node that signs it, named is another transaction's. */
  | "HASH_OF_ANOTHER"
  /** Called impossible more than once, and taken by no node ever. */
  | "REFUSED_FOR_GOOD";

export interface Fact {
  readonly text: string;
  readonly since: Date;
}

/** Rejected once, it may be one node's mood; rejected again, and taken by no node, it is for good. */
const REJECTIONS_FOR_GOOD = 2;

/** No node will ever take it as it is: the hole policy may act on it. */
export function isRefusedForGood(tx: Tracked): boolean {
  return tx.acceptedOrdinal === null && tx.pace.rejections >= REJECTIONS_FOR_GOOD;
}

/**
 * An operator holds it, and has not requested its next send. A hold binds as soon as it is planned, until its end is
 * durable.
 */
export function isHeldBack({ held, acknowledged, pace }: Tracked): boolean {
  return (held || acknowledged.heldSince !== null) && !pace.ordered;
}

/** Due to be sent or judged, and not held. */
export function isDueAt(tx: Tracked, nowMs: number): boolean {
  return isSendDue(tx.pace, nowMs) && !isHeldBack(tx);
}

/** Sets a fact once; true if it is new. */
export function establish(tx: Tracked, code: FactCode, fact: Fact): boolean {
  if (tx.facts.has(code)) return false;
  tx.facts.set(code, fact);
  return true;
}

/** Signed a moment ago. The step that commits it, with the claim to send it, is yet to be planned. */
export function signed(record: AllocatedRecord, { ordinal, rawTransaction }: SignedAttempt, now: Date): Tracked {
  const row = keptTransaction({ ...UNSIGNED, expiredAt: record.expired ?? null });
  return new Tracked({ ...record, firstSentAt: now }, row, signedPace(ordinal, rawTransaction));
}

/**
 * A row as a new owner finds it: its receipt is looked for first. Where no node is known to have taken its newest bytes,
 * they are sent then; a node that has them calls them known.
 */
export function resumed(record: TrackedRecord): Tracked {
  const sendOrdinal = attemptToSend(record.attempts)?.ordinal ?? null;
  const takenAt = isTakenAsItIs(record, sendOrdinal) ? record.lastSubmittedAt : null;
  const pace = resumedPace(sendOrdinal, record.receipt !== null);
  return new Tracked({ ...record, takenAt }, keptTransaction(rowOf(record)), pace);
}

/** Folded from the steps that follow. */
export function rowOf(record: TrackedRecord): TransactionRow {
  const { state, subState, attempts, receipt, submitAttempts, acceptedOrdinal, lastError } = record;
  const details = { receipt, submitAttempts, lastError };
  const times = { heldSince: record.held ?? null, expiredAt: record.expired ?? null };
  return { state, subState, acceptedOrdinal, ...times, attempts, details };
}

/** A node accepted the newest bytes, and no answer contradicts that since: it waits for a block, not for a send. */
function isTakenAsItIs(record: TrackedRecord, sendOrdinal: number | null) {
  const { state, subState, acceptedOrdinal, lastError } = record;
  const waits = state === "STUCK" || subState === "BROADCAST" || subState === "STALE";
  return waits && sendOrdinal !== null && lastError === null && (acceptedOrdinal ?? 0) >= sendOrdinal;
}

/** STUCK transactions are sent again all the same, but seldom: it is not expected to help. */
const STUCK_PACE = 10;

/** How long after a send the same bytes are due again; null: never by age. */
export function resubmitEveryMs(intervalMs: number | null, state: State): number | null {
  return intervalMs === null || state !== "STUCK" ? intervalMs : intervalMs * STUCK_PACE;
}

/**
 * A transaction that a node accepted from the previous owner is due when it would have been there: an interval after it
 * was last sent. A takeover does not send everything again.
 */
export function keepPace(tx: Tracked, { nowMs, now }: { nowMs: number; now: Date }, everyMs: number | null): void {
  if (tx.takenAt === null || tx.receipt !== null) return;
  const ageMs = Math.max(0, now.getTime() - tx.takenAt.getTime());
  happened(tx, takenBefore, afterInterval(nowMs, everyMs === null ? null : Math.max(0, everyMs - ageMs)));
}

/** A transaction that waits to be signed, for a step after which it still waits. */
export function queued(
  record: Pick<AllocatedRecord, "txId" | "nonce" | "requestId" | "createdAt" | "validUntil">,
): Tracked {
  return new Tracked(record, keptTransaction(UNSIGNED), resumedPace(null, false));
}

/** The only place that changes the pace of a lane or of a transaction: by an event. */
export function happened<Pace, Details extends readonly unknown[]>(
  to: { pace: Pace },
  event: (pace: Pace, ...details: Details) => Pace,
  ...details: Details
): void {
  to.pace = event(to.pace, ...details);
}

/** The newest payload that is ours to send. Null: only its hash is known, or the chain node signs it. */
export async function decodedNewest({ store, codec }: LanePorts, tx: Tracked): Promise<DecodedTransaction | null> {
  const newest = attemptToSend(tx.attempts);
  if (newest === null || newest.nodeSigned === true) return null;
  const [bytes] = await store.loadRawTransactions([{ txId: tx.txId, ordinal: newest.ordinal }]);
  return bytes === undefined ? null : codec.decodeTransaction(bytes);
}

/** Null for blobs (EIP-4844) and delegations (EIP-7702): signed again without them it would do something else. */
export function rebuildable({ envelope, unsigned }: DecodedTransaction): UnsignedTransaction | null {
  return envelope === "eip4844" || envelope === "eip7702" ? null : unsigned;
}
