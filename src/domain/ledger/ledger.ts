import type { Hex, Lane } from "../lane.ts";
import type { SignatureRecord } from "../messages/record.ts";
import type { Hole } from "../nonces/holes.ts";
import type { Charge } from "../policy/charges.ts";
import type { MessageUse } from "../policy/message-rules.ts";
import type { Policies } from "../policy/policy.ts";
import type { Use } from "../policy/use.ts";
import type { Reservation } from "../transaction/reservations.ts";
import type { Attempt, Receipt } from "../transaction/transaction.ts";
import { isSettled, type State, type Status, type TransitionEvent } from "../transaction/transitions.ts";
import { loaded, Part } from "./part.ts";

/** Some of the database's rows of a lane, as read under the lane's lock. Nothing in it can be changed. */
export interface Ledger {
  readonly lane: Lane;
  /**
   * The lane's next nonce: one above every nonce that was ever given, unless an operator lowered it. Null: the lane is
   * new.
   */
  readonly cursor: number | null;
  readonly suspendedBy: SuspendedBy | null;
  /** One above the highest nonce whose transaction was deleted by retention (retention.ts); null: none was deleted. */
  readonly departedBelow: number | null;
  /**
   * False if the database's history changed (a restore, lost commits) and the lane has not been compared with the chain
   * since.
   */
  readonly reconciled: boolean;
  /** True if the feed's current epoch began because the database may have lost commits. Undefined: not loaded. */
  readonly mayHaveLost: boolean | undefined;
  /**
   * The highest nonce whose reservation ended in any way but a release by its caller; null: there is none. A store may
   * give a higher one, if a transaction or an open reservation has it. Undefined: not loaded.
   */
  readonly endedThrough: number | null | undefined;
  /**
   * Nonces below this one were given before the database last lost, or may have lost, commits. Undefined: not loaded.
   */
  readonly epochFloor: number | undefined;
  /**
   * Times at which the lane automatically put placeholders at nonces of expired reservations. Includes at least those
   * of the last hour. Undefined: not loaded.
   */
  readonly repairs: readonly Date[] | undefined;
  readonly transactions: Part<string, LedgerTransaction>;
  /** Id of the transaction at each nonce, whatever its state. */
  readonly nonces: Part<number, string>;
  /** Ids of the transactions that the owner still processes, by nonce: open, or settled and watched for reorgs. */
  readonly live: Part<number, string>;
  /** Ids of transactions that may not change their nonce (may-move.ts), by nonce. */
  readonly fixed: Part<number, string>;
  /** Settled transactions that are watched for reorgs, by the number of the block that mined them. */
  readonly watched: Part<number, readonly Watched[]>;
  /** The transaction that owns each request id. */
  readonly requests: Part<string, RequestOwner>;
  /**
   * The transaction that owns each request id of a pool (`poolKey`). It is on this lane, or on another lane of the
   * pool.
   */
  readonly pooled: Part<string, RequestOwner>;
  readonly holes: Part<number, Hole>;
  readonly reservations: Part<string, Reservation>;
  /** Open reservations by nonce. */
  readonly reserved: Part<number, string>;
  /** Reservation ids by the caller's request id. */
  readonly reservedAs: Part<string, string>;
  /** Intents in the intake table, by the number of their row. */
  readonly intake: Part<number, WaitingIntent>;
  /** Fingerprints of operators' actions that were carried out, by idempotency key (draft.ts). */
  readonly actionKeys: Part<string, Hex>;
  /** Requested signatures of messages, by request id. */
  readonly messages: Part<string, SignatureRecord | Spent>;
  /** Signatures and amounts counted by the signer's rules about messages, by the rule's name. */
  readonly messageUse: Part<string, MessageUse>;
  /** Policies that apply to the lane; null: no policy is in force. */
  readonly guard: Guard | null;
}

export interface LedgerTransaction extends Status {
  readonly txId: string;
  readonly requestId: string | null;
  readonly owner: string | null;
  /** The transaction's nonce. Null if it was refused before it got a nonce, or has given its nonce up. */
  readonly nonce: number | null;
  readonly live: boolean;
  readonly lastEvent: TransitionEvent;
  /** Number of rows in the transaction's history. */
  readonly steps: number;
  readonly attemptCount: number;
  /** True if the caller chose the nonce. */
  readonly pinned: boolean;
  /** Number of the highest attempt that an RPC node accepted; null: no accepted attempt is known. */
  readonly acceptedOrdinal: number | null;
  /** The caller's deadline for the transaction; null: there is none. */
  readonly validUntil: Date | null;
  /** Time since which an operator has put the transaction on hold; null: not on hold. */
  readonly heldSince: Date | null;
  /**
   * Time since which the transaction is being cancelled because `validUntil` has passed; null: it is not being
   * cancelled.
   */
  readonly expiredAt: Date | null;
  /** Number of the block in the transaction's receipt; null: there is no receipt. Undefined: not loaded. */
  readonly minedIn: number | null | undefined;
  /** Fingerprint of the caller's request. Undefined: not loaded. */
  readonly fingerprint: Hex | undefined;
  /** Attempts of the transaction. Undefined: not loaded. */
  readonly attempts: readonly LedgerAttempt[] | undefined;
  /** Details of the transaction. Undefined: not loaded. */
  readonly details: TransactionDetails | undefined;
}

/** Details of a transaction that only the lane's owner uses; the rules of the ledger do not read them. */
export interface TransactionDetails extends StepDetails {
  readonly createdAt: Date;
  readonly lastSubmittedAt: Date | null;
  /** Time at which it last became unknown whether a node that signs by itself had sent the transaction. */
  readonly lostSightAt: Date | null;
}

/** Details of a transaction that are computed from its steps alone. */
export interface StepDetails {
  readonly receipt: Receipt | null;
  readonly submitAttempts: number;
  readonly lastError: string | null;
}

export interface LedgerAttempt extends Attempt {
  /** Time at which the right to send the attempt was first stored; null: never. */
  readonly firstSentAt: Date | null;
}

/** A settled transaction that a deep reorg could still undo. */
export interface Watched {
  readonly txId: string;
  readonly nonce: number;
  readonly state: State;
}

/** An intent in the intake table, the table of intents without a nonce, that has no result yet. */
export interface WaitingIntent {
  readonly intakeId: number;
  readonly txId: string;
  readonly requestId: string | null;
  readonly owner: string | null;
  readonly fingerprint: Hex;
  readonly acceptedAt: Date;
  /** The approval that the intent needs; null: no policy has required one so far. */
  readonly approval: Approval | null;
  readonly validUntil?: Date;
  /** True if an operator has put the intent on hold: until its release it gets no nonce and does not expire. */
  readonly held?: true;
  /** How often the intent was put on hold or released; absent: never. */
  readonly holds?: number;
  /** True if the node that stored the intent still waits for the result and has not yet responded to its caller. */
  readonly unanswered: boolean;
}

/** The rule that requires approval of an intent, and its time limit. */
export interface Approval {
  readonly rule: string;
  readonly expiresAt: Date;
  readonly approved: boolean;
}

/** Key of an operator's action, used in the ledger and in a database index. */
export function actionKeyOf({ subject, key }: { subject: string; key: string }): string {
  return `${subject}:${key}`;
}

/**
 * Number of rows in the intent's history: accepted, then awaiting approval, then approved, plus each hold and release
 * in between.
 */
export function stepsOf({ approval, holds = 0 }: Pick<WaitingIntent, "approval" | "holds">): number {
  if (approval === null) return 1 + holds;
  return (approval.approved ? 3 : 2) + holds;
}

const NAMED = { kind: "named" } as const;

/** Creates a ledger with only the lane's own row. The loader adds the other rows that a write needs. */
export function bareLedger(
  lane: Lane,
  standing: Pick<Ledger, "cursor" | "suspendedBy" | "reconciled"> & Partial<Ledger>,
): Ledger {
  return { ...NOTHING_LOADED, lane, ...standing };
}

/**
 * One empty object shared by all lanes: a commit of many lanes creates a ledger for each, and most of its fields stay
 * empty.
 */
const NOTHING_LOADED: Omit<Ledger, "lane" | "cursor" | "suspendedBy" | "reconciled"> = {
  departedBelow: null,
  mayHaveLost: undefined,
  endedThrough: undefined,
  epochFloor: undefined,
  repairs: undefined,
  transactions: Part.of("transaction", NAMED),
  nonces: Part.of("transaction at nonce", NAMED),
  live: Part.of("live transaction at nonce", NAMED),
  fixed: Part.of("transaction that may not move at nonce", NAMED),
  watched: Part.of("watched block", NAMED),
  requests: Part.of("request id", NAMED),
  pooled: Part.of("pool's request id", NAMED),
  holes: Part.of("hole", NAMED),
  reservations: Part.of("reservation", NAMED),
  reserved: Part.of("reservation of nonce", NAMED),
  reservedAs: Part.of("reservation named", NAMED),
  intake: Part.of("intake row", NAMED),
  actionKeys: Part.of("action key", NAMED),
  messages: Part.of("signature with request id", NAMED),
  messageUse: Part.of("use of rule", NAMED),
  guard: null,
};

/**
 * True if the lane must neither allocate nor send: it must first be compared with the chain, or an operator has to
 * review it.
 */
export function isHeld({ reconciled, suspendedBy }: Ledger): boolean {
  return !reconciled || suspendedBy === "HISTORY";
}

/**
 * True if the lane gives no nonces: it must first be compared with the chain or reviewed, or this version cannot read
 * all rules of the policy document.
 */
export function givesNoNonce(ledger: Ledger): boolean {
  return isHeld(ledger) || (ledger.guard?.policies.unreadable.length ?? 0) > 0;
}

export function existingOf({ lane }: Ledger, tx: LedgerTransaction): ExistingTransaction {
  const { txId, requestId, owner, nonce, state } = tx;
  const fingerprint = loaded(tx.fingerprint, `the fingerprint of ${txId}`);
  return { txId, lane, requestId, owner, nonce, state, fingerprint };
}

export function isSpent(owner: RequestOwner | SignatureRecord | null | undefined): owner is Spent {
  return owner !== null && owner !== undefined && "spent" in owner;
}

/**
 * Number of the block that mined a settled transaction, if the transaction is still watched for reorgs. Null: it is not
 * watched. Undefined: its block was not loaded.
 */
export function watchedIn({ live, state, minedIn }: LedgerTransaction): number | null | undefined {
  return live && isSettled(state) ? minedIn : null;
}

/**
 * The reservation as every reader sees it: past its expiry time it counts as expired, even if the lane's owner has not
 * settled it yet.
 */
export function reservationAt(reservation: Reservation, at: Date): Reservation {
  const isPast = reservation.state === "RESERVED" && reservation.expiresAt <= at;
  return isPast ? { ...reservation, state: "EXPIRED" } : reservation;
}

/**
 * Reason of a suspension. OPERATOR: creates are accepted and wait. HISTORY: commits may have been lost, so nothing is
 * allocated either, until an operator resumes.
 */
export type SuspendedBy = "OPERATOR" | "HISTORY";

/** Owner of a request id: a transaction, stored or already deleted by retention. */
export type RequestOwner = ExistingTransaction | Spent;

/** Owner of a request id whose transaction was final and was deleted by retention: nothing else is known about it. */
export interface Spent {
  readonly spent: true;
}

export interface ExistingTransaction
  extends Pick<LedgerTransaction, "txId" | "requestId" | "owner" | "nonce" | "state"> {
  readonly lane: Lane;
  readonly fingerprint: Hex;
}

export interface Guard {
  readonly policies: Policies;
  /** Amounts that the lane's signer has used of its limits. Undefined: not loaded. */
  readonly use: Use | undefined;
  /** Amounts that each API key has used of its limits, over all its lanes on this chain. */
  readonly keyUse: Part<string, Use>;
  /** Amounts counted against limits, by transaction id. */
  readonly charges: Part<string, readonly Charge[]>;
}

/** The ledger before a step, and the time at which the step is checked. */
export interface Judging {
  readonly ledger: Ledger;
  readonly at: Date;
}
