import type { Fence, Hash, Hex } from "../lane.ts";
import type { Hole } from "../nonces/holes.ts";
import type { Paid } from "../policy/charges.ts";
import type { Asked, Forbidden } from "../policy/policy.ts";
import type { Problem } from "../text/refusal.ts";
import type { Reservation } from "../transaction/reservations.ts";
import type { Payload, PreparedIntent, Receipt, SignedAttempt } from "../transaction/transaction.ts";
import type { CompletionState, State, SubState, TransitionEvent } from "../transaction/transitions.ts";
import type { ExistingTransaction, SuspendedBy } from "./ledger.ts";

export type { ExistingTransaction, RequestOwner, Spent, SuspendedBy } from "./ledger.ts";

/** The writes of a lane's owner that the ledger judges. What a lane's owner writes about its chain is none of them. */
export type LedgerWrite =
  | AllocateWrite
  | AlignWrite
  | ReconcileWrite
  | RealignWrite
  | SuspendWrite
  | TransitionWrite
  | UnwatchWrite
  | SettleIntakeWrite
  | NonceWrite;

/**
 * Gives free holes first, lowest first, then consecutive nonces, in order, from max(cursor, floor). Repeats of a
 * request id, stored or within the batch, get none; nor do repeats of a pool's request id, on any of its lanes.
 */
export interface AllocateWrite extends Fenced<"allocate">, WantedNonces {
  readonly items: readonly NewTransaction[];
}

export interface NewTransaction {
  readonly intent: PreparedIntent;
  /** Set if the intent came through the intake table: the row there is consumed in the same transaction. */
  readonly intakeId?: number;
  /**
   * It may have been allocated before, by an earlier request for the same create whose answer was lost: its id is
   * looked for.
   */
  readonly mayExist?: boolean;
}

/**
 * An operator's word that the cursor was pushed too far: lowered to `floor`, but never to a nonce that may have left, be
 * it a transaction's or a reservation's. Free holes above it are holes no more.
 */
export interface RealignWrite extends Fenced<"realign"> {
  readonly floor: number;
  readonly decision?: LaneDecision;
}

/** Raises the cursor to a proven count (never lowers it), or gives a new lane its first. */
export interface AlignWrite extends Fenced<"align"> {
  readonly floor: number;
}

/**
 * After the database's history changed: raises the cursor to what the chain has of this signer, mined or pending, and
 * lets the lane act in the feed's present epoch. Until then it allocates nothing and claims nothing.
 */
export interface ReconcileWrite extends Fenced<"reconcile"> {
  /** The higher of the proven counts. */
  readonly floor: number;
}

/** Suspends or resumes a lane for an operator. Resuming also ends a stop by HISTORY. */
export interface SuspendWrite extends Fenced<"suspend"> {
  readonly suspended: boolean;
  readonly decision?: LaneDecision;
}

/** Actor and reason of a decision about a lane as a whole: kept for ever, in the transaction that carried it out. */
export interface LaneDecision {
  readonly action: string;
  readonly actor: string;
  readonly reason: string;
  /** Set if the action has a key. */
  readonly order?: OrderKey;
}

export interface TransitionWrite extends Fenced<"transition"> {
  readonly items: readonly TransitionItem[];
}

/** One move of one transaction through the table of domain/transitions.ts, with what it changes beside the state. */
export interface TransitionItem {
  readonly txId: string;
  readonly event: TransitionEvent;
  /** The row must still be in this state, else the item's result is `conflict`. */
  readonly from: State;
  readonly to: State;
  readonly subState: SubState | null;
  readonly reason?: string;
  /** With `shiftDown`: the free hole it moves into. Its own nonce is free from then on. */
  readonly nonce?: number;
  /** Set if a person, hook or policy decided this: kept in the history, and never merged with a repeat. */
  readonly decision?: Decision;
  /** With `amend`: what is signed instead of the caller's payload, which stays as it was. */
  readonly change?: QueuedChange;
  /** With another payload than was judged before, or with another price: what policies judge, and count. */
  readonly spends?: Spending;
  /** With a claim of a held transaction: an operator requested exactly this send. */
  readonly ordered?: true;
  /**
   * With a cancel, or a queued one: because its `validUntil` is over. `conflict` if it is not, or the transaction is
   * held.
   */
  readonly expires?: true;
  /** With an outcome: the amount paid, if that is counted. */
  readonly paid?: Paid;
  /** A new attempt; inserted, and its hash tracked from this commit on. */
  readonly attempt?: SignedAttempt;
  /** Hash of an attempt that a node signed itself, tracked from this commit on. */
  readonly identified?: { readonly ordinal: number; readonly txHash: Hash };
  /**
   * Permission to send this attempt's bytes under this term: counts a submission and its time. A held lane gets none:
   * `conflict`. A held transaction only with a decision.
   */
  readonly claim?: { readonly ordinal: number };
  /** With a claim, or a decision: public endpoints may be given every payload of it from now on. */
  readonly disclosed?: true;
  /** A node took this attempt; the row keeps the highest. */
  readonly accepted?: { readonly ordinal: number };
  /** A receipt found on the canonical chain, or null: withdrawn, its block left that chain. */
  readonly receipt?: Receipt | null;
  /** Null clears; absent leaves as it is. */
  readonly lastError?: string | null;
  readonly completion?: NewCompletion;
}

/** Maximum cost of a payload. */
export interface Spending extends Pick<Payload, "to" | "data" | "value"> {
  /** Gas × fee cap, blobs included. */
  readonly gasCost: bigint;
  readonly about: Asked["about"];
}

/** Another payload for a transaction that is not signed yet, and the kind of attempt that it becomes. */
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

/** Everything settled of this lane and mined at or below the block is past its watch: no longer resumed or loaded. */
export interface UnwatchWrite extends Fenced<"unwatch"> {
  readonly throughBlock: number;
}

/** Intake rows that get no nonce: refused (FAILED_FINAL with a completion), or an alias of a request that already exists; and what was decided about those that wait for approval. */
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
      /** The answer for its sender, if one waits: then nothing is kept of it, and its request id stays free. */
      readonly problem?: Problem;
      /** Refuse only if the sender still waits for the answer; else the intent goes on waiting. */
      readonly ifUnanswered?: true;
    }
  | ApprovalResult;

/**
 * For an intent that waits for approval, is held, or is past its `validUntil`; skipped if it is none of these any more.
 * Past its time it expires, whatever was decided, unless it is held.
 */
export interface ApprovalResult<Event extends IntakeEvent = IntakeEvent> {
  readonly intakeId: number;
  /** Request id of the intent: another transaction may have it by now. */
  readonly requestId: string | null;
  readonly result: "decided";
  readonly event: Event;
  readonly reason: string;
  /** Null: it expired without a decision. */
  readonly decision: Decision | null;
}

/** Possible decisions about an intent without a nonce. */
export type IntakeEvent = "approve" | "reject" | "expire" | "callOff" | "hold" | "unhold";

/** Result of a judged write. */
export type LedgerOutcome =
  | { readonly status: "allocated"; readonly items: readonly AllocateResult[]; readonly cursor: number }
  | { readonly status: "applied"; readonly items: readonly MoveResult[] }
  | { readonly status: "aligned"; readonly cursor: number }
  | { readonly status: "reconciled"; readonly cursor: number; readonly suspendedBy: SuspendedBy | null }
  | { readonly status: "done" }
  | NonceOutcome;

/** "conflict": it was in another state. "forbidden": by a policy. Nothing was done then. */
export type MoveResult = "applied" | "conflict" | "forbidden";

export type AllocateResult =
  /** `recycled`: the nonce was a hole. */
  | { readonly result: "created"; readonly nonce: number; readonly createdAt: Date; readonly recycled?: true }
  /** The request id exists: the row it names. `samePayload` distinguishes a repeat from a reuse. */
  | { readonly result: "duplicate"; readonly existing: ExistingTransaction; readonly samePayload: boolean }
  /** The request id belonged to a transaction that is kept no more: nothing consumed. */
  | { readonly result: "spent" }
  /** The caller named another nonce than the next one, which is this: nothing consumed. */
  | { readonly result: "otherNonce"; readonly next: number }
  /** The lane has no cursor and no floor was given: nothing consumed. */
  | { readonly result: "noCursor" }
  /**
   * The lane is not reconciled since the database's history changed, or waits for an operator; `unreadable`: this version
   * cannot read the policy document in force. Nothing consumed.
   */
  | { readonly result: "held"; readonly unreadable?: true }
  /** The intent's `validUntil` is over: nothing consumed. */
  | { readonly result: "expired" }
  /** A policy does not allow it: nothing consumed. */
  | ({ readonly result: "forbidden" } & Forbidden)
  /** A policy has it wait for approval, durably and without a nonce. */
  | { readonly result: "awaiting"; readonly rule: string; readonly createdAt: Date }
  /** The database cannot hold this item; found by bisecting, never answered by the store itself. */
  | { readonly result: "refused"; readonly detail: string };

/** Members of every write: its kind, and the proof that the lane belongs to its writer. */
export interface Fenced<Kind extends string> {
  readonly kind: Kind;
  readonly fence: Fence;
}

/** The nonces that a write asks for. */
export interface WantedNonces {
  /** The proven chain count; null if none is known (then the lane must already have a cursor). */
  readonly floor: number | null;
  /** Free holes that may be taken, lowest first; which of them still are is judged behind the lane's lock. */
  readonly fill?: readonly number[];
}

/** An operator's action by its idempotency key: an action carried out under it is not carried out again. */
export interface OrderKey {
  /** The id of the transaction that it is addressed to; empty: the lane itself. */
  readonly subject: string;
  readonly key: string;
  /** Fingerprint of the action's content: a repeat has the same. */
  readonly fingerprint: Hex;
}

/** The actor of a step, for the audit. */
export interface Decision {
  /** `operator:<key name>`, `hook`, `policy`. */
  readonly actor: string;
  /** Data of the decider for the audit: action, ticket, severity. */
  readonly audit: Readonly<Record<string, unknown>> | null;
  /** Set if the action has a key; in one of its steps. */
  readonly order?: OrderKey;
}

/** Writes about nonces that no ordinary create brought: reservations and holes. Fenced like every other. */
export type NonceWrite = ReserveWrite | ReleaseWrite | ExpireWrite | BindWrite | CloseHolesWrite | FindSkippedWrite;

/** Keeps a nonce for a caller: a free one first, else from max(cursor, floor). A repeat of the request id gets its own again. */
export interface ReserveWrite extends Fenced<"reserve">, WantedNonces {
  readonly reservationId: string;
  readonly requestId: string | null;
  readonly owner: string | null;
  readonly ttlMs: number;
  /** How many nonces of the lane one key may keep from others at a time. */
  readonly most: number;
}

/** The caller's word that nothing was signed: the nonce is free. */
export interface ReleaseWrite extends Fenced<"release"> {
  readonly reservationId: string;
}

/** Every open reservation of the lane that is past by the database's clock ends, and leaves a hole. */
export type ExpireWrite = Fenced<"expire">;

/**
 * A reserved nonce, or a hole, gets its transaction: inserted, signed and, if there are bytes, claimed in one step.
 * There is no moment in which it is allocated and could be signed otherwise.
 */
export interface BindWrite extends Fenced<"bind"> {
  readonly nonce: number;
  /**
   * The reservation it fulfils, open or expired and its nonce still a hole; or the expired one that left the hole which a
   * placeholder takes. Without either the nonce must be a hole.
   */
  readonly reservation?:
    | { readonly reservationId: string; readonly becomes: "SUBMITTED" | "USED" }
    | { readonly reservationId: string; readonly becomes: "EXPIRED"; readonly mostPerHour?: number };
  /**
   * Instead: a caller signed it for a nonce that it chose. Taken at an open reservation of that caller's, or as the next nonce
   * of the lane above everything; nowhere else.
   */
  readonly chosen?: Pick<WantedNonces, "floor">;
  readonly intent: PreparedIntent;
  readonly attempt: SignedAttempt;
  readonly reason: string;
  readonly decision?: Decision;
}

/** Foreign transactions are at these nonces, too deep for a reorg: they are no holes any more. */
export interface CloseHolesWrite extends Fenced<"closeHoles"> {
  readonly nonces: readonly number[];
}

/**
 * The cursor went over these nonces because the chain was said to have passed them, and it has not: from `from` on, below
 * `below` and the cursor, whatever neither a transaction nor a reservation nor a hole has is a hole from now on.
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
      /** If the result is "forbidden". */
      readonly forbidden?: Forbidden;
      /** If a chosen nonce is in "conflict": the one that would have been taken. */
      readonly next?: number | null;
    };

export type ReserveResult =
  | { readonly result: "created"; readonly reservation: Reservation; readonly recycled: boolean }
  | { readonly result: "existing"; readonly reservation: Reservation }
  /** The request id belongs to a transaction. */
  | { readonly result: "requestTaken"; readonly txId: string; readonly owner: string | null }
  /** The request id belonged to a transaction that is kept no more. */
  | { readonly result: "spent" }
  /** The key keeps as many nonces of the lane from others as it may. */
  | { readonly result: "tooMany" }
  | { readonly result: "noCursor" };

/**
 * "conflict": it was settled before, or the nonce is no hole any more. "limited": the lane repaired as many expired
 * reservations in this hour as it may. "held": the lane has not been compared with the chain since the database's history
 * changed. "forbidden": by a policy. Nothing was done in any of them.
 */
export type SettleResult = "settled" | "conflict" | "limited" | "held" | "forbidden";
