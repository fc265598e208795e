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

/**
 * Facts about a transaction that are known when its owner loads or signs it, and that do not change while the owner has
 * the lane.
 */
interface Known extends Pick<TrackedRecord, "txId" | "nonce" | "requestId" | "createdAt" | "validUntil"> {
  /** Time at which the right to send the transaction was first stored. */
  readonly firstSentAt?: Date | null;
  /**
   * Times from before this node owned the lane: when a node accepted the bytes that are to be sent next, and when the
   * response to a send was lost, so that it is unknown whether a node has the bytes.
   */
  readonly takenAt?: Date | null;
  readonly lostSightAt?: Date | undefined;
}

/**
 * A signed transaction that is not final, in its owner's memory. The database is authoritative; this copy can be
 * discarded.
 */
export class Tracked {
  readonly txId;
  readonly nonce;
  readonly requestId;
  readonly createdAt;
  /** Deadline that the caller set; null if it set none. */
  readonly validUntil;
  /** Time at which the right to send the transaction was first stored, by any owner; null if unknown. */
  readonly firstSentAt;
  /**
   * Time of the last send of the newest bytes, if a node accepted them before this node acquired the lane; else null.
   */
  readonly takenAt;
  readonly lostSightAt;
  private row;
  /** The schedule: when the transaction is next sent, looked up or repriced. Changed only through `happened`. */
  pace;
  /** Reasons why the transaction does not progress, each with its beginning; shown to operators. */
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

  /**
   * Applies a state change to the row, when it is planned and again when the database has acknowledged it. No other
   * code changes the row.
   */
  stands<Step>(after: (row: KeptTransaction, step: Step) => KeptTransaction, step: Step): void {
    this.row = after(this.row, step);
  }

  /** The row as the database has acknowledged it. */
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

  /** Ordinal of the highest attempt that a node accepted; null if there is none. */
  get acceptedOrdinal(): number | null {
    return this.row.expected.acceptedOrdinal;
  }

  get lastError(): string | null {
    return this.row.expected.details.lastError;
  }

  /**
   * True if an operator has put the transaction on hold: none of its attempts is sent, signed or repriced
   * automatically.
   */
  get held(): boolean {
    return this.row.expected.heldSince !== null;
  }

  /** True if the transaction is being cancelled because its `validUntil` has passed. */
  get expired(): boolean {
    return this.row.expected.expiredAt !== null;
  }
}

/** Codes of the reasons why a transaction does not progress, as found by the lane's loop. */
export type FactCode =
  /** The transaction needs a higher fee than its ceiling allows. */
  | "FEE_CEILING_REACHED"
  /** A policy does not allow the transaction to cost more. */
  | "POLICY_LIMIT_REACHED"
  /** The maximum number of payloads is signed, so no further one is; the existing ones are still sent and looked up. */
  | "MAX_ATTEMPTS_REACHED"
  /** The transaction's bytes cannot be signed again at another price. */
  | "CANNOT_RESIGN"
  /** A node accepted the transaction, it was resent as often as the settings allow, and no block contains it. */
  | "RESENT_OFTEN"
  /** No transaction holds one of the nonces below this transaction's nonce. */
  | "NONCE_HOLE"
  /** The signer's balance cannot pay for the transaction. */
  | "INSUFFICIENT_FUNDS"
  /** The hash that the caller, or the chain node that signs, reported belongs to another transaction. */
  | "HASH_OF_ANOTHER"
  /** The transaction was rejected as invalid more than once, and no node ever accepted it. */
  | "REFUSED_FOR_GOOD";

export interface Fact {
  readonly text: string;
  readonly since: Date;
}

/**
 * Number of rejections after which a transaction that no node ever accepted counts as refused for good. A single
 * rejection may be one node's error.
 */
const REJECTIONS_FOR_GOOD = 2;

/** True if no node will ever accept the transaction unchanged: the hole policy may act on it. */
export function isRefusedForGood(tx: Tracked): boolean {
  return tx.acceptedOrdinal === null && tx.pace.rejections >= REJECTIONS_FOR_GOOD;
}

/**
 * True if the transaction is put on hold by an operator, who has not requested its next send. A hold applies as soon as
 * it is planned, and until its end is durable.
 */
export function isHeldBack({ held, acknowledged, pace }: Tracked): boolean {
  return (held || acknowledged.heldSince !== null) && !pace.sendRequested;
}

/** True if the transaction is not on hold, and is to be sent or repriced now. */
export function isDueAt(tx: Tracked, nowMs: number): boolean {
  return isSendDue(tx.pace, nowMs) && !isHeldBack(tx);
}

/** Records a reason why a transaction does not progress; true if it was not recorded before. */
export function establish(tx: Tracked, code: FactCode, fact: Fact): boolean {
  if (tx.facts.has(code)) return false;
  tx.facts.set(code, fact);
  return true;
}

/**
 * Makes the in-memory record of a transaction that was just signed. The commit that stores it and claims the right to
 * send it is not planned yet.
 */
export function signed(record: AllocatedRecord, { ordinal, rawTransaction }: SignedAttempt, now: Date): Tracked {
  const row = keptTransaction({ ...UNSIGNED, expiredAt: record.expired ?? null });
  return new Tracked({ ...record, firstSentAt: now }, row, signedPace(ordinal, rawTransaction));
}

/**
 * Makes the in-memory record of a transaction that a new owner loads from the database. Its receipt is looked up first.
 * If no node is known to have accepted its newest bytes, they are then sent; a node that already has them answers
 * "already known".
 */
export function resumed(record: TrackedRecord): Tracked {
  const sendOrdinal = attemptToSend(record.attempts)?.ordinal ?? null;
  const takenAt = isTakenAsItIs(record, sendOrdinal) ? record.lastSubmittedAt : null;
  const pace = resumedPace(sendOrdinal, record.receipt !== null);
  return new Tracked({ ...record, takenAt }, keptTransaction(rowOf(record)), pace);
}

/** The stored row of a loaded transaction. State changes made later are applied to this row. */
export function rowOf(record: TrackedRecord): TransactionRow {
  const { state, subState, attempts, receipt, submitAttempts, acceptedOrdinal, lastError } = record;
  const details = { receipt, submitAttempts, lastError };
  const times = { heldSince: record.held ?? null, expiredAt: record.expired ?? null };
  return { state, subState, acceptedOrdinal, ...times, attempts, details };
}

/**
 * True if a node accepted the newest bytes, and no response contradicts that since: the transaction waits for a block,
 * not for a send.
 */
function isTakenAsItIs(record: TrackedRecord, sendOrdinal: number | null) {
  const { state, subState, acceptedOrdinal, lastError } = record;
  const waits = state === "STUCK" || subState === "BROADCAST" || subState === "STALE";
  return waits && sendOrdinal !== null && lastError === null && (acceptedOrdinal ?? 0) >= sendOrdinal;
}

/** Factor by which the resubmit interval of STUCK transactions is longer: resending is not expected to help. */
const STUCK_PACE = 10;

/** Interval after which the same bytes are sent again; null if they are not resent by age. */
export function resubmitEveryMs(intervalMs: number | null, state: State): number | null {
  return intervalMs === null || state !== "STUCK" ? intervalMs : intervalMs * STUCK_PACE;
}

/**
 * Schedules a transaction that a node accepted when the previous owner sent it. It is due one interval after that send,
 * so that a takeover does not resend everything.
 */
export function keepPace(tx: Tracked, { nowMs, now }: { nowMs: number; now: Date }, everyMs: number | null): void {
  if (tx.takenAt === null || tx.receipt !== null) return;
  const ageMs = Math.max(0, now.getTime() - tx.takenAt.getTime());
  happened(tx, takenBefore, afterInterval(nowMs, everyMs === null ? null : Math.max(0, everyMs - ageMs)));
}

/** Makes an in-memory record of a transaction that is not signed yet, for a state change other than signing. */
export function queued(
  record: Pick<AllocatedRecord, "txId" | "nonce" | "requestId" | "createdAt" | "validUntil">,
): Tracked {
  return new Tracked(record, keptTransaction(UNSIGNED), resumedPace(null, false));
}

/** Applies an event to the pace (the schedule) of a lane or a transaction. No other code changes a pace. */
export function happened<Pace, Details extends readonly unknown[]>(
  to: { pace: Pace },
  event: (pace: Pace, ...details: Details) => Pace,
  ...details: Details
): void {
  to.pace = event(to.pace, ...details);
}

/** The decoded newest payload that this node can send; null if only its hash is known, or the chain node signs it. */
export async function decodedNewest({ store, codec }: LanePorts, tx: Tracked): Promise<DecodedTransaction | null> {
  const newest = attemptToSend(tx.attempts);
  if (newest === null || newest.nodeSigned === true) return null;
  const [bytes] = await store.loadRawTransactions([{ txId: tx.txId, ordinal: newest.ordinal }]);
  return bytes === undefined ? null : codec.decodeTransaction(bytes);
}

/**
 * The transaction's unsigned form. Null if it has blobs (EIP-4844) or delegations (EIP-7702), which cannot be signed
 * again here: without them the transaction would do something else.
 */
export function rebuildable({ envelope, unsigned }: DecodedTransaction): UnsignedTransaction | null {
  return envelope === "eip4844" || envelope === "eip7702" ? null : unsigned;
}
