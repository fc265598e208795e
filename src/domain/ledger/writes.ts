import type { Hash, Hex } from "../lane.ts";
import type { Hole } from "../nonces/holes.ts";
import type { Paid } from "../policy/charges.ts";
import type { Asked, Forbidden } from "../policy/policy.ts";
import type { Problem } from "../text/refusal.ts";
import type { Reservation } from "../transaction/reservations.ts";
import type { Payload, PreparedIntent, Receipt, SignedAttempt } from "../transaction/transaction.ts";
import type { CompletionState, State, SubState, TransitionEvent } from "../transaction/transitions.ts";
import type { Fenced } from "./fenced.ts";
import type { ExistingTransaction, SuspendedBy } from "./ledger.ts";
import type { MessageResult, MessageWrite } from "./message-writes.ts";

export type { Fenced } from "./fenced.ts";
export type { ExistingTransaction, RequestOwner, Spent, SuspendedBy } from "./ledger.ts";

/** The writes of a lane's owner that the ledger accepts or refuses. Writes about the whole chain are not among them. */
export type LedgerWrite =
  | AllocateWrite
  | AlignWrite
  | ReconcileWrite
  | RealignWrite
  | SuspendWrite
  | TransitionWrite
  | UnwatchWrite
  | SettleIntakeWrite
  | MessageWrite
  | NonceWrite;

/**
 * Gives nonces to new transactions: first the free nonce gaps in `fill`, lowest first, then consecutive nonces from
 * max(cursor, floor), where `cursor` is the lane's next nonce. A repeat of a request id, stored or within the batch,
 * gets no nonce; nor does a repeat of a pool's request id on any lane of the pool.
 */
export interface AllocateWrite extends Fenced<"allocate">, WantedNonces {
  readonly items: readonly NewTransaction[];
}

export interface NewTransaction {
  readonly intent: PreparedIntent;
  /** Set if the intent came through the intake table: its row there is consumed in the same database transaction. */
  readonly intakeId?: number;
  /**
   * True if the transaction may already exist, because an earlier request for the same create got no response. Its id
   * is then looked up first.
   */
  readonly mayExist?: boolean;
}

/**
 * An operator states that the lane's next nonce (`cursor`) was raised too far. It is lowered to `floor`, but never to a
 * nonce that may have been used by a transaction or a reservation. Nonce gaps from the new next nonce on are deleted.
 */
export interface RealignWrite extends Fenced<"realign"> {
  readonly floor: number;
  readonly decision?: LaneDecision;
}

/** Raises the cursor to a proven transaction count (never lowers it), or sets the first cursor of a new lane. */
export interface AlignWrite extends Fenced<"align"> {
  readonly floor: number;
}

/**
 * Needed after the database's history changed. Raises the lane's next nonce to the chain's transaction count of this
 * signer, mined or pending, and lets the lane work in the feed's current epoch. Before that, the lane allocates and
 * sends nothing.
 */
export interface ReconcileWrite extends Fenced<"reconcile"> {
  /** The higher of the proven transaction counts, mined or pending. */
  readonly floor: number;
}

/** Suspends or resumes a lane for an operator. Resuming also ends a suspension by HISTORY. */
export interface SuspendWrite extends Fenced<"suspend"> {
  readonly suspended: boolean;
  readonly decision?: LaneDecision;
}

/**
 * Actor and reason of a decision about a whole lane. Written in the database transaction that carries out the decision,
 * and never deleted.
 */
export interface LaneDecision {
  readonly action: string;
  readonly actor: string;
  readonly reason: string;
  /** Idempotency key of the operator's action, if it has one. */
  readonly actionKey?: ActionKey;
}

export interface TransitionWrite extends Fenced<"transition"> {
  readonly items: readonly TransitionItem[];
}

/** One step of one transaction (transaction/transitions.ts): the new state, and the other data that it changes. */
export interface TransitionItem {
  readonly txId: string;
  readonly event: TransitionEvent;
  /** State in which the transaction must still be; if it is not, the item's result is `conflict`. */
  readonly from: State;
  readonly to: State;
  readonly subState: SubState | null;
  readonly reason?: string;
  /** With `shiftDown`: the free nonce that the transaction moves down to. Its old nonce becomes free. */
  readonly nonce?: number;
  /**
   * Set if an operator, hook or policy decided this step. The decision is stored in the transaction's history, in a row
   * that is never merged with a repeat.
   */
  readonly decision?: Decision;
  /** With `amend`: the payload to sign instead of the caller's payload, which stays stored unchanged. */
  readonly change?: QueuedChange;
  /**
   * Spending that policies check and count now. Set if the payload or its price differs from the one that was checked
   * before.
   */
  readonly spends?: Spending;
  /** True if an operator requested this one send of a transaction that is on hold. Set together with `claim`. */
  readonly sendRequested?: true;
  /**
   * True for a cancel that is made because `validUntil` has passed, whether it is signed now or queued. The result is
   * `conflict` if `validUntil` has not passed, or if the transaction is on hold.
   */
  readonly expires?: true;
  /** With an outcome: the amount paid, if a limit counts it. With `reorg`, for statistics: that of the withdrawn one. */
  readonly paid?: Paid;
  /** With `paid`, for statistics alone: when it was created, and the price per gas that its mined payload offers. */
  readonly measured?: { readonly createdAt: Date; readonly offered: bigint };
  /** A new attempt to insert. From this commit on, receipts are searched for its hash. */
  readonly attempt?: SignedAttempt;
  /** Hash of an attempt that an RPC node signed itself. From this commit on, receipts are searched for it. */
  readonly identified?: { readonly ordinal: number; readonly txHash: Hash };
  /**
   * Stores the right to send this attempt's bytes in this ownership of the lane, and counts the send and its time. The
   * result is `conflict` if the lane may not send. A transaction on hold needs an operator's decision.
   */
  readonly claim?: { readonly ordinal: number };
  /**
   * True if every payload of this private transaction may be sent to public endpoints from now on. Set together with a
   * claim or a decision.
   */
  readonly disclosed?: true;
  /** An RPC node accepted this attempt. The transaction's row stores the highest accepted attempt number. */
  readonly accepted?: { readonly ordinal: number };
  /** A receipt found on the canonical chain. Null: the receipt is withdrawn, because its block left that chain. */
  readonly receipt?: Receipt | null;
  /** Last error of the transaction. Null clears it; absent leaves it unchanged. */
  readonly lastError?: string | null;
  readonly completion?: NewCompletion;
}

/** What a payload may spend at most, for the policy check. */
export interface Spending extends Pick<Payload, "to" | "data" | "value"> {
  /** Gas cost: gas × fee cap, blobs included. */
  readonly gasCost: bigint;
  readonly about: Asked["about"];
}

/** A new payload for a transaction that is not signed yet, and the kind of attempt that it becomes. */
export interface QueuedChange {
  readonly kind: "cancel" | "replace" | "placeholder";
  readonly payload: Payload;
  readonly gas: bigint;
}

export interface NewCompletion {
  readonly state: CompletionState;
  readonly subState: SubState | null;
  readonly settled: boolean;
  readonly txHash: Hash | null;
}

/**
 * Stops watching all settled transactions of this lane that were mined at or below the block. They are then no longer
 * loaded by an owner of the lane.
 */
export interface UnwatchWrite extends Fenced<"unwatch"> {
  readonly throughBlock: number;
}

/**
 * Results for intake rows that get no nonce: a refusal (FAILED_FINAL with a completion), a reference to the transaction
 * of the same request (`alias`), or a decision about an intent that waits for approval.
 */
export interface SettleIntakeWrite extends Fenced<"settleIntake"> {
  readonly results: readonly IntakeResult[];
}

export type IntakeResult =
  | { readonly intakeId: number; readonly result: "alias"; readonly of: string }
  | {
      readonly intakeId: number;
      readonly result: "refused";
      readonly event: "refuse" | "refuseReusedRequestId";
      readonly reason: string;
      /** Response for the sender if it still waits: then the intent is not stored, and its request id stays free. */
      readonly problem?: Problem;
      /** Refuse only if the sender still waits for the response; otherwise the intent stays in the intake. */
      readonly ifUnanswered?: true;
    }
  | ApprovalResult;

/**
 * Decision about an intent without a nonce. Any but `hold` and `unhold` is skipped unless the intent waits for
 * approval, is approved, on hold, or past its `validUntil`. In the last case it expires, unless it is on hold.
 */
export interface ApprovalResult<Event extends IntakeEvent = IntakeEvent> {
  readonly intakeId: number;
  /** Request id of the intent. Another transaction may own it by now. */
  readonly requestId: string | null;
  readonly result: "decided";
  readonly event: Event;
  readonly reason: string;
  /** Who decided about the intent, and why; null: it expired without a decision. */
  readonly decision: Decision | null;
}

/** Possible decisions about an intent without a nonce. */
export type IntakeEvent = "approve" | "reject" | "expire" | "callOff" | "hold" | "unhold";

/** Result of a write after the ledger accepted or refused it. */
export type LedgerOutcome =
  | { readonly status: "allocated"; readonly items: readonly AllocateResult[]; readonly cursor: number }
  | { readonly status: "applied"; readonly items: readonly MoveResult[] }
  | { readonly status: "aligned"; readonly cursor: number }
  | { readonly status: "reconciled"; readonly cursor: number; readonly suspendedBy: SuspendedBy | null }
  | { readonly status: "done" }
  | ({ readonly status: "message" } & MessageResult)
  | NonceOutcome;

/**
 * Result of a step. "conflict": the transaction was in another state, or the step is not allowed now. "forbidden": a
 * policy forbids the step. In both cases nothing was changed.
 */
export type MoveResult = "applied" | "conflict" | "forbidden";

export type AllocateResult =
  /** A nonce was allocated. `recycled`: true if it was a free nonce gap below the lane's next nonce. */
  | { readonly result: "created"; readonly nonce: number; readonly createdAt: Date; readonly recycled?: true }
  /**
   * The request id exists already; `existing` is its transaction. `samePayload`: true for a repeat of the same request,
   * false if the id was reused for another payload.
   */
  | { readonly result: "duplicate"; readonly existing: ExistingTransaction; readonly samePayload: boolean }
  /** The request id belonged to a transaction that retention has deleted: no nonce is consumed. */
  | { readonly result: "spent" }
  /** The caller named a nonce other than the next one, which is `next`: no nonce is consumed. */
  | { readonly result: "otherNonce"; readonly next: number }
  /** The lane has no next nonce yet, and no transaction count of the chain was given: no nonce is consumed. */
  | { readonly result: "noCursor" }
  /**
   * The lane has not been compared with the chain since the database's history changed, or it or the intent waits for
   * an operator. `unreadable`: this version cannot read the policy document in force. No nonce is consumed.
   */
  | { readonly result: "held"; readonly unreadable?: true }
  /** The intent's `validUntil` has passed: no nonce is consumed. */
  | { readonly result: "expired" }
  /** A policy forbids the transaction: no nonce is consumed. */
  | ({ readonly result: "forbidden" } & Forbidden)
  /** A policy requires approval: the intent waits, persisted and without a nonce. */
  | { readonly result: "awaiting"; readonly rule: string; readonly createdAt: Date }
  /**
   * The database cannot store this item. The sender of the batch finds such an item by bisecting; the store never
   * returns this result itself.
   */
  | { readonly result: "refused"; readonly detail: string };

/** Which nonces a write may use. */
export interface WantedNonces {
  /** The chain's proven transaction count; null if none is known. Then the lane must already have a next nonce. */
  readonly floor: number | null;
  /**
   * Nonce gaps to use first, lowest first. Left out are those below `floor`, those that an expired reservation left,
   * and those that are no longer gaps under the lane's lock.
   */
  readonly fill?: readonly number[];
}

/** Idempotency key of an operator's action: an action that was carried out under this key is not carried out again. */
export interface ActionKey {
  /** Id of the transaction that the action is about; empty if it is about the whole lane. */
  readonly subject: string;
  readonly key: string;
  /** Fingerprint of the action's content: a repeat of the action has the same fingerprint. */
  readonly fingerprint: Hex;
}

/** Who decided a step, for the audit. */
export interface Decision {
  /** One of `operator:<key name>`, `hook`, `policy`. */
  readonly actor: string;
  /** Further data of the decision for the audit: action, ticket, severity. */
  readonly audit: Readonly<Record<string, unknown>> | null;
  /** Idempotency key of the operator's action, if it has one. Only one of the action's steps has the key. */
  readonly actionKey?: ActionKey;
}

/** Writes about nonces outside ordinary creates: reservations and nonce gaps. */
export type NonceWrite = ReserveWrite | ReleaseWrite | ExpireWrite | BindWrite | CloseHolesWrite | FindSkippedWrite;

/**
 * Reserves a nonce for a caller: the lowest free nonce gap in `fill`, otherwise max(cursor, floor), where `cursor` is
 * the lane's next nonce. A repeat of the request id gets the same reservation again.
 */
export interface ReserveWrite extends Fenced<"reserve">, WantedNonces {
  readonly reservationId: string;
  readonly requestId: string | null;
  readonly owner: string | null;
  readonly ttlMs: number;
  /** Maximum number of the lane's nonces that reservations of one API key, open or expired, may block. */
  readonly most: number;
}

/** The caller states that it signed nothing for the reserved nonce: the nonce becomes free. */
export interface ReleaseWrite extends Fenced<"release"> {
  readonly reservationId: string;
}

/** Ends every open reservation of the lane that has expired by the database's clock. Each leaves a nonce gap. */
export type ExpireWrite = Fenced<"expire">;

/**
 * Gives a transaction a reserved nonce or fills a nonce gap with it. In one write, the transaction is inserted and
 * signed and, if there are bytes, the right to send it is stored. It is never visible as merely allocated, so no other
 * payload can be signed for it.
 */
export interface BindWrite extends Fenced<"bind"> {
  readonly nonce: number;
  /**
   * The reservation whose nonce the transaction uses. It is open, or expired while nothing uses its nonce. For a
   * placeholder: the expired reservation that left the nonce gap. If absent, the nonce must be a gap.
   */
  readonly reservation?:
    | { readonly reservationId: string; readonly becomes: "SUBMITTED" | "USED" }
    | { readonly reservationId: string; readonly becomes: "EXPIRED"; readonly mostPerHour?: number };
  /**
   * Alternative to `reservation`: a caller signed the transaction for a nonce that it chose. The nonce is accepted only
   * if that caller has an open reservation for it, or if it is the lane's next nonce above all given ones.
   */
  readonly chosen?: Pick<WantedNonces, "floor">;
  readonly intent: PreparedIntent;
  readonly attempt: SignedAttempt;
  readonly reason: string;
  readonly decision?: Decision;
}

/** Closes the gaps at these nonces: other programs' transactions were mined there, too deep for a reorg. */
export interface CloseHolesWrite extends Fenced<"closeHoles"> {
  readonly nonces: readonly number[];
}

/**
 * Records skipped nonces as gaps. The lane skipped them because an endpoint wrongly reported that the chain had passed
 * them. Checks the nonces from `from` on, below `below` and below the lane's next nonce, for those without a
 * transaction, reservation or recorded gap.
 */
export interface FindSkippedWrite extends Fenced<"findSkipped"> {
  readonly from: number;
  readonly below: number;
}

export type NonceOutcome =
  | { readonly status: "reserved"; readonly result: ReserveResult; readonly cursor: number }
  | { readonly status: "released"; readonly result: SettleResult; readonly hole: Hole | null }
  | { readonly status: "expired"; readonly holes: readonly Hole[] }
  | { readonly status: "skipped"; readonly holes: readonly Hole[] }
  | {
      readonly status: "bound";
      readonly result: SettleResult;
      readonly createdAt: Date;
      readonly requestId: string | null;
      /** The policy's reason, if the result is "forbidden". */
      readonly forbidden?: Forbidden;
      /** If the nonce that a caller chose was refused ("conflict"): the nonce that would have been accepted. */
      readonly next?: number | null;
    };

export type ReserveResult =
  | { readonly result: "created"; readonly reservation: Reservation; readonly recycled: boolean }
  | { readonly result: "existing"; readonly reservation: Reservation }
  /** The request id belongs to a transaction. */
  | { readonly result: "requestTaken"; readonly txId: string; readonly owner: string | null }
  /** The request id belonged to a transaction that retention has deleted. */
  | { readonly result: "spent" }
  /** The API key already keeps the maximum number of nonces of the lane reserved. */
  | { readonly result: "tooMany" }
  | { readonly result: "noCursor" };

/**
 * Result of a write about a reservation or a nonce gap. "conflict": the reservation was settled before, or the nonce is
 * no longer a gap. "limited": the lane has reached its hourly limit of placeholders for expired reservations. "held":
 * the lane gives no nonces now: it must be compared with the chain or checked by an operator, or policies are
 * unreadable. "forbidden": a policy forbids it. Unless the result is "settled", nothing was changed.
 */
export type SettleResult = "settled" | "conflict" | "limited" | "held" | "forbidden";
