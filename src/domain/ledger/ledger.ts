import type { Hex, Lane } from "../lane.ts";
import type { Hole } from "../nonces/holes.ts";
import type { Charge } from "../policy/charges.ts";
import type { Policies } from "../policy/policy.ts";
import type { Use } from "../policy/use.ts";
import type { Reservation } from "../transaction/reservations.ts";
import type { Attempt, Receipt } from "../transaction/transaction.ts";
import { isSettled, type State, type Status, type TransitionEvent } from "../transaction/transitions.ts";
import { loaded, Part } from "./part.ts";

/** A part of the database's rows of a lane, as they are behind the lane's lock. Readonly throughout. */
export interface Ledger {
  readonly lane: Lane;
  /** Above every nonce that was ever given, unless an operator lowered it. Null: the lane is new. */
  readonly cursor: number | null;
  readonly suspendedBy: SuspendedBy | null;
  /** One above the highest nonce of a transaction that is kept no more (retention.ts); null: all of them are. */
  readonly departedBelow: number | null;
  /** False: the database's history changed, and the lane has not been compared with the chain since. */
  readonly reconciled: boolean;
  /** The feed's present epoch began because commits may have been lost. Undefined: not loaded. */
  readonly mayHaveLost: boolean | undefined;
  /** The highest nonce whose reservation ended without being released; null: none did. Undefined: not loaded. */
  readonly endedThrough: number | null | undefined;
  /** Lower nonces were given out before the database last lost, or may have lost, commits. Undefined: not loaded. */
  readonly epochFloor: number | undefined;
  /** When the lane put placeholders at nonces of expired reservations by itself, in the last hour at least. Undefined: not loaded. */
  readonly repairs: readonly Date[] | undefined;
  readonly transactions: Part<string, LedgerTransaction>;
  /** Which transaction has a nonce, whatever became of it. */
  readonly nonces: Part<number, string>;
  /** Transactions that are still followed, by nonce: open, or settled and watched. */
  readonly live: Part<number, string>;
  /** Transactions that may not move (may-move.ts), by nonce. */
  readonly fixed: Part<number, string>;
  /** Settled and watched, by the number of the block that mined them. */
  readonly watched: Part<number, readonly Watched[]>;
  /** Owners of request ids. */
  readonly requests: Part<string, RequestOwner>;
  /** Owners of a pool's request ids (`poolKey`): a transaction of this lane, or of another one of the pool. */
  readonly pooled: Part<string, RequestOwner>;
  readonly holes: Part<number, Hole>;
  readonly reservations: Part<string, Reservation>;
  /** Open reservations by nonce. */
  readonly reserved: Part<number, string>;
  /** Reservations by the caller's name for them. */
  readonly reservedAs: Part<string, string>;
  /** Intents in the intake table. */
  readonly intake: Part<number, WaitingIntent>;
  /** Fingerprints of actions that were carried out, by their keys (draft.ts). */
  readonly orders: Part<string, Hex>;
  /** Null: no policy is in force. */
  readonly guard: Guard | null;
}

export interface LedgerTransaction extends Status {
  readonly txId: string;
  readonly requestId: string | null;
  readonly owner: string | null;
  /** Null: refused before it had one, or given up. */
  readonly nonce: number | null;
  readonly live: boolean;
  readonly lastEvent: TransitionEvent;
  /** How many rows its history has. */
  readonly steps: number;
  readonly attemptCount: number;
  /** The caller named the nonce. */
  readonly pinned: boolean;
  /** The highest attempt that a node took; null: none that we know of. */
  readonly acceptedOrdinal: number | null;
  /** The caller's deadline; null: none. */
  readonly validUntil: Date | null;
  /** Since when an operator holds it; null: not held. */
  readonly heldSince: Date | null;
  /** Since when it is being cancelled because `validUntil` was over; null: it is not. */
  readonly expiredAt: Date | null;
  /** The number of the block that its receipt is from; null: it has none. Undefined: not loaded. */
  readonly minedIn: number | null | undefined;
  /** Fingerprint of the caller's request. Undefined: not loaded. */
  readonly fingerprint: Hex | undefined;
  /** Undefined: not loaded. */
  readonly attempts: readonly LedgerAttempt[] | undefined;
  /** Undefined: not loaded. */
  readonly details: TransactionDetails | undefined;
}

/** For the lane's owner only; no rule reads it. */
export interface TransactionDetails extends StepDetails {
  readonly createdAt: Date;
  readonly lastSubmittedAt: Date | null;
  /** When it was last not known what a node made of it. */
  readonly lostSightAt: Date | null;
}

/** Details that follow from the steps alone. */
export interface StepDetails {
  readonly receipt: Receipt | null;
  readonly submitAttempts: number;
  readonly lastError: string | null;
}

export interface LedgerAttempt extends Attempt {
  /** When sending it was first claimed; null: never. */
  readonly firstSentAt: Date | null;
}

/** A settled transaction that a deep reorg would still concern. */
export interface Watched {
  readonly txId: string;
  readonly nonce: number;
  readonly state: State;
}

/** An intent of the intake table without a result yet. */
export interface WaitingIntent {
  readonly intakeId: number;
  readonly txId: string;
  readonly requestId: string | null;
  readonly owner: string | null;
  readonly fingerprint: Hex;
  readonly acceptedAt: Date;
  /** Null: no policy has asked for it. */
  readonly approval: Approval | null;
  readonly validUntil?: Date;
  /** Held back by an operator: it gets no nonce, and does not expire, before it is let go. */
  readonly held?: true;
  /** How often it was held back or let go on; absent: never. */
  readonly holds?: number;
  /** The sender still waits for the result, and has not answered its caller that the intent is accepted. */
  readonly unanswered: boolean;
}

/** The rule that requires approval of an intent, and its time limit. */
export interface Approval {
  readonly rule: string;
  readonly expiresAt: Date;
  readonly approved: boolean;
}

/** Key of an operator's action, in a ledger and in an index of the database. */
export function orderKeyOf({ subject, key }: { subject: string; key: string }): string {
  return `${subject}:${key}`;
}

/** How many rows its history has: accepted, and then awaited, and then approved, and held or let go in between. */
export function stepsOf({ approval, holds = 0 }: Pick<WaitingIntent, "approval" | "holds">): number {
  if (approval === null) return 1 + holds;
  return (approval.approved ? 3 : 2) + holds;
}

const NAMED = { kind: "named" } as const;

/** A lane's own row, and nothing else of it: the loader puts in what a write needs beside it. */
export function bareLedger(
  lane: Lane,
  standing: Pick<Ledger, "cursor" | "suspendedBy" | "reconciled"> & Partial<Ledger>,
): Ledger {
  return { ...NOTHING_LOADED, lane, ...standing };
}

/** Shared by all lanes: a commit of many lanes makes a part of each, and most of it stays empty. */
const NOTHING_LOADED: Omit<Ledger, "lane" | "cursor" | "suspendedBy" | "reconciled"> = {
  departedBelow: null,
  ...{ mayHaveLost: undefined, endedThrough: undefined, epochFloor: undefined, repairs: undefined },
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
  orders: Part.of("order", NAMED),
  guard: null,
};

/** The lane allocates nothing and sends nothing: it is to be reconciled first, or an operator has to look at it. */
export function isHeld({ reconciled, suspendedBy }: Ledger): boolean {
  return !reconciled || suspendedBy === "HISTORY";
}

/** The lane is held, or what the policy document forbids is not known to this version. */
export function givesNoNonce(ledger: Ledger): boolean {
  return isHeld(ledger) || (ledger.guard?.policies.unreadable.length ?? 0) > 0;
}

export function existingOf({ lane }: Ledger, tx: LedgerTransaction): ExistingTransaction {
  const { txId, requestId, owner, nonce, state } = tx;
  const fingerprint = loaded(tx.fingerprint, `the fingerprint of ${txId}`);
  return { txId, lane, requestId, owner, nonce, state, fingerprint };
}

export function isSpent(owner: RequestOwner | null | undefined): owner is Spent {
  return owner !== null && owner !== undefined && "spent" in owner;
}

/** The block that it is watched in: settled, and not past its watch. Null: in none. Undefined: its block was not loaded. */
export function watchedIn({ live, state, minedIn }: LedgerTransaction): number | null | undefined {
  return live && isSettled(state) ? minedIn : null;
}

/**
 * The reservation as every reader sees it: past its time it is expired, whether or not its lane's owner has settled it.
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

/** Whose a request id is: a transaction's, or one's that is kept no more. */
export type RequestOwner = ExistingTransaction | Spent;

/** Its transaction was final, and has left by retention: all that is known is that there was one. */
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
  /** Use by the lane's signer. Undefined: not loaded. */
  readonly use: Use | undefined;
  /** Use by name of the API key, over all its lanes on this chain. */
  readonly keyUse: Part<string, Use>;
  /** Charges by transaction. */
  readonly charges: Part<string, readonly Charge[]>;
}

/** The lane as it is before a step, and the moment that the step is judged by. */
export interface Judging {
  readonly ledger: Ledger;
  readonly at: Date;
}
