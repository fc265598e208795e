import type { Hole } from "../domain/holes.ts";
import type { Fence, Hash, Hex, Lane } from "../domain/lane.ts";
import type {
  Attempt,
  Intent,
  LaneTransaction,
  Payload,
  PreparedIntent,
  Receipt,
  SignedAttempt,
} from "../domain/transaction.ts";
import type { CompletionState, State, SubState, TransitionEvent } from "../domain/transitions.ts";
import type { NonceOutcome, NonceWrite } from "./nonce-writes.ts";

/**
 * The writes of a lane's owner. Each carries a fence, and `LaneStore.commit` is the only method that writes lane data:
 * there is no way to write without proving tenure in the same database transaction, under a lock on the lane row.
 */
export type LaneWrite =
  | AllocateWrite
  | AlignWrite
  | ReconcileWrite
  | RealignWrite
  | IdentifyWrite
  | SuspendWrite
  | TransitionWrite
  | UnwatchWrite
  | ConfirmationsWrite
  | SettleIntakeWrite
  | NonceWrite;

/**
 * Gives free holes first, lowest first, then consecutive nonces, in order, from max(cursor, floor). Repeats of a request
 * id, stored or within the batch, get none.
 */
export interface AllocateWrite {
  readonly kind: "allocate";
  readonly fence: Fence;
  /** The proven chain count; null where none is known (then the lane must already have a cursor). */
  readonly floor: number | null;
  /** Free holes that may be taken, lowest first; which of them still are is judged behind the lane's lock. */
  readonly fill?: readonly number[];
  readonly items: readonly NewTransaction[];
}

export interface NewTransaction {
  readonly intent: PreparedIntent;
  /** Set where the intent came through the intake table: the row there is consumed in the same transaction. */
  readonly intakeId?: number;
  /** It may have been allocated before, by a telling of the same create that nobody heard the answer of: its id is looked for. */
  readonly mayExist?: boolean;
}

/**
 * An operator's word that the cursor was pushed too far: lowered to `floor`, but never to a nonce that may have left, be
 * it a transaction's or a reservation's. Free holes above it are holes no more.
 */
export interface RealignWrite {
  readonly kind: "realign";
  readonly fence: Fence;
  readonly floor: number;
  readonly decision?: LaneDecision;
}

/** Notes the first block of a chain, once; whoever comes later compares. */
export interface IdentifyWrite {
  readonly kind: "identify";
  readonly fence: Fence;
  readonly genesisHash: Hash;
}

/** Raises the cursor to a proven count (never lowers it), or gives a new lane its first. */
export interface AlignWrite {
  readonly kind: "align";
  readonly fence: Fence;
  readonly floor: number;
}

/**
 * After the database's history changed: raises the cursor to what the chain has of this signer, mined or pending, and
 * lets the lane act in the feed's present epoch. Until then it allocates nothing and claims nothing.
 */
export interface ReconcileWrite {
  readonly kind: "reconcile";
  readonly fence: Fence;
  /** The higher of the proven counts. */
  readonly floor: number;
}

/**
 * Who stopped a lane. OPERATOR: creates are accepted and wait. HISTORY: commits may have been lost, so nothing is
 * allocated either, until an operator resumes.
 */
export type SuspendedBy = "OPERATOR" | "HISTORY";

/** By an operator; taking it back also ends a stop by HISTORY. */
export interface SuspendWrite {
  readonly kind: "suspend";
  readonly fence: Fence;
  readonly suspended: boolean;
  readonly decision?: LaneDecision;
}

/** Who decided something about a lane as a whole, and why: kept for ever, in the transaction that did it. */
export interface LaneDecision {
  readonly action: string;
  readonly actor: string;
  readonly reason: string;
}

export interface TransitionWrite {
  readonly kind: "transition";
  readonly fence: Fence;
  readonly items: readonly TransitionItem[];
}

/** One move of one transaction through the table of domain/transitions.ts, with what it changes beside the state. */
export interface TransitionItem {
  readonly txId: string;
  readonly event: TransitionEvent;
  /** The row must still be in this state, else the item's fate is `conflict`. */
  readonly from: State;
  readonly to: State;
  readonly subState: SubState | null;
  readonly reason?: string;
  /** With `shiftDown`: the free hole it moves into. Its own nonce is free from then on. */
  readonly nonce?: number;
  /** Set where somebody decided this: kept in the history, and never merged with a repeat. */
  readonly decision?: Decision;
  /** With `amend`: what is signed instead of the caller's payload, which stays as it was. */
  readonly change?: QueuedChange;
  /** A new attempt; inserted, and its hash tracked from this commit on. */
  readonly attempt?: SignedAttempt;
  /** What a node made of an attempt that it signed itself: its hash, tracked from this commit on. */
  readonly identified?: { readonly ordinal: number; readonly txHash: Hash };
  /** Permission to send this attempt's bytes under this term: counts a submission and its time. A held lane gets none: `conflict`. */
  readonly claim?: { readonly ordinal: number };
  /** A node took this attempt; the row keeps the highest. */
  readonly accepted?: { readonly ordinal: number };
  /** A receipt found on the canonical chain, or null: withdrawn, its block left that chain. */
  readonly receipt?: Receipt | null;
  /** Null clears; absent leaves as it is. */
  readonly lastError?: string | null;
  readonly completion?: NewCompletion;
}

/** Another payload for a transaction that is not signed yet, and the kind of attempt that it becomes. */
export interface QueuedChange {
  readonly kind: "cancel" | "replace" | "placeholder";
  readonly payload: Payload;
  readonly gas: bigint;
}

/** Who or what decided a step, for the audit. */
export interface Decision {
  /** `operator:<key name>`, `hook`, `policy`. */
  readonly actor: string;
  /** Whatever the decider wants to be found again: action, ticket, severity. */
  readonly audit: Readonly<Record<string, unknown>> | null;
}

export interface NewCompletion {
  readonly state: CompletionState;
  readonly subState: SubState | null;
  readonly settled: boolean;
  readonly txHash: Hash | null;
}

/** Everything settled of this lane and mined at or below the block is past its watch: no longer resumed or loaded. */
export interface UnwatchWrite {
  readonly kind: "unwatch";
  readonly fence: Fence;
  readonly throughBlock: number;
}

/** The canonical blocks of a chain as the deciding node saw them, stored once per chain, kept under the fence of a lane it decides for. */
export interface ConfirmationsWrite {
  readonly kind: "confirmations";
  readonly fence: Fence;
  /** Hash-linked, ascending. A stored block with another hash at one of these heights is a new fork: replaced from there up. */
  readonly blocks: readonly { readonly number: number; readonly hash: Hash }[];
  /** Blocks below are no longer needed by anyone and may be removed. */
  readonly pruneBelow: number;
}

/** Intake rows that get no nonce: refused (FAILED_FINAL with a completion), or an alias of a request that already exists. */
export interface SettleIntakeWrite {
  readonly kind: "settleIntake";
  readonly fence: Fence;
  readonly fates: readonly IntakeFate[];
}

export type IntakeFate =
  | { readonly intakeId: number; readonly fate: "alias"; readonly of: string }
  | {
      readonly intakeId: number;
      readonly fate: "refused";
      readonly event: "refuse" | "refuseReusedRequestId";
      readonly reason: string;
    };

/** What became of one write, in the order given. A fenced lane or a bad item never fails the others. */
export type WriteOutcome =
  | { readonly status: "fenced" }
  | { readonly status: "allocated"; readonly items: readonly AllocateFate[]; readonly cursor: number }
  | { readonly status: "applied"; readonly items: readonly ("applied" | "conflict")[] }
  | { readonly status: "aligned"; readonly cursor: number }
  | { readonly status: "reconciled"; readonly cursor: number; readonly suspendedBy: SuspendedBy | null }
  | { readonly status: "confirmations"; readonly newFork: boolean }
  | { readonly status: "done" }
  /** Of the end of a watch: a part is written, the rest failed and is to be written again. */
  | { readonly status: "unfinished" }
  | NonceOutcome;

export type AllocateFate =
  /** `recycled`: the nonce was a hole. */
  | { readonly fate: "created"; readonly nonce: number; readonly createdAt: Date; readonly recycled?: true }
  /** The request id exists: the row it names. `samePayload` tells an honest repeat from a reuse. */
  | { readonly fate: "duplicate"; readonly existing: ExistingTransaction; readonly samePayload: boolean }
  /** The lane has no cursor and no floor was given: nothing consumed. */
  | { readonly fate: "noCursor" }
  /** The lane is not reconciled since the database's history changed, or waits for an operator: nothing consumed. */
  | { readonly fate: "held" }
  /** The database cannot hold this item; found by bisecting, never answered by the store itself. */
  | { readonly fate: "refused"; readonly detail: string };

export interface ExistingTransaction {
  readonly txId: string;
  readonly lane: Lane;
  readonly requestId: string | null;
  readonly nonce: number | null;
  readonly state: State;
  readonly fingerprint: Hex;
}

/** An intent waiting in the intake table, visible because its caller's transaction has committed. */
export interface IntakeRow {
  readonly intakeId: number;
  readonly intent: Intent;
}

/** Everything an owner needs to take a lane up from the database alone. */
export interface LaneSnapshot {
  readonly cursor: number | null;
  readonly suspendedBy: SuspendedBy | null;
  /** False: the database's history changed, and the lane has not been compared with the chain since. */
  readonly reconciled: boolean;
  /** Where the lane stood when the feed's current epoch began: lower nonces were given out before that. 0: never changed. */
  readonly epochFloor: number;
  /** The first block of the chain as this database knows it; null: nobody has noted it yet. */
  readonly genesisHash: Hash | null;
  /** TRACKING and STUCK, ascending by nonce, with every attempt's hash. */
  readonly tracking: readonly TrackedRecord[];
  /** How many ALLOCATED rows wait to be signed; they are read page by page. */
  readonly allocated: number;
  /** Blocks that hold settled transactions still under watch: height and hash, distinct. */
  readonly watched: readonly { readonly number: number; readonly hash: Hash }[];
  /** Ascending by nonce. */
  readonly holes: readonly Hole[];
  /** Open reservations, with what is left of them by the database's clock. */
  readonly reservations: readonly OpenReservation[];
}

export interface OpenReservation {
  readonly reservationId: string;
  readonly nonce: number;
  readonly leftMs: number;
}

export interface TrackedRecord extends LaneTransaction {
  readonly attempts: readonly Attempt[];
  readonly receipt: Receipt | null;
  readonly submitAttempts: number;
  readonly createdAt: Date;
  /** When sending its first payload was claimed; null: never. */
  readonly firstSentAt: Date | null;
  readonly lastSubmittedAt: Date | null;
  /** When sight of it was lost, where it is still not known what a node made of it. */
  readonly lostSightAt?: Date;
  /** The highest attempt that a node took; null: none that we know of. */
  readonly acceptedOrdinal: number | null;
  readonly lastError: string | null;
  /** Of a settled row that is watched too: what the feed last said. */
  readonly requestId: string | null;
}

export interface AllocatedRecord {
  readonly txId: string;
  readonly nonce: number;
  readonly requestId: string | null;
  /** What is to be signed: the caller's, or what was put in its place. */
  readonly payload: Payload;
  readonly gas: bigint;
  readonly createdAt: Date;
  /** Set where it was signed at another nonce before: those payloads are still followed. */
  readonly attempts?: readonly Attempt[];
  /** Set where the payload is not the caller's. */
  readonly changedTo?: QueuedChange["kind"];
}

export interface StoredPayload {
  readonly payload: Payload;
  readonly gas: bigint;
}

/** Request ids of one lane; the same id of another lane is another request. */
export interface AskedRequests {
  readonly lane: Lane;
  readonly requestIds: readonly string[];
}

export interface LaneStore {
  /**
   * One database transaction: open with SET LOCAL timeouts, check the database's history, lock the lanes ascending and
   * prove each fence, apply every write, completions last, commit. Throws `StoreUnavailable` (nothing committed),
   * `OutcomeUnknown`, `HistoryChanged` or `BatchRefused`.
   */
  commit(writes: readonly LaneWrite[]): Promise<readonly WriteOutcome[]>;

  /** Null where the fence no longer holds. */
  loadLane(fence: Fence): Promise<LaneSnapshot | null>;
  /** ALLOCATED rows with nonce ≥ `fromNonce`, ascending. */
  loadAllocated(lane: Lane, fromNonce: number, limit: number): Promise<readonly AllocatedRecord[]>;
  /** Raw bytes of attempts, in the order asked. */
  loadRawTransactions(keys: readonly { readonly txId: string; readonly ordinal: number }[]): Promise<readonly Hex[]>;
  /** What transactions say, for keys whose payloads are stored unsigned; in the order asked. */
  loadPayloads(txIds: readonly string[]): Promise<readonly StoredPayload[]>;
  /** Settled and watched rows of a lane that were mined in one of these blocks. */
  loadWatched(lane: Lane, blockHashes: readonly Hash[]): Promise<readonly TrackedRecord[]>;
  /** One above the highest nonce of the lane that is settled and past its watch; 0 where none is. */
  settledBelow(lane: Lane): Promise<number>;
  /** The idempotency pre-check: existing transactions (or intake rows) by request id, of any number of lanes in one look. */
  findByRequestIds(asked: readonly AskedRequests[]): Promise<readonly ExistingTransaction[]>;
  /** Whether an intake row waits for any lane at all, of this node or another: the names of ten thousand lanes are not gone through many times a second to learn that none does. */
  hasIntake(): Promise<boolean>;
  /** Visible intake rows of these lanes that are not consumed, in call order. */
  loadIntake(lanes: readonly Lane[], limit: number): Promise<readonly IntakeRow[]>;
}
/** The database could not be reached or refused the work; nothing of the batch is committed. `busy` = a lock or statement timeout, worth an immediate retry. */
export class StoreUnavailable extends Error {
  readonly busy: boolean;
  constructor(message: string, options: ErrorOptions & { readonly busy?: boolean } = {}) {
    super(message, options);
    this.name = "StoreUnavailable";
    this.busy = options.busy ?? false;
  }
}

/** The connection died at COMMIT and the database did not say in time what became of it. */
export class OutcomeUnknown extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "OutcomeUnknown";
  }
}

/** The database answers with data it could not hold: one item poisons the batch. Bisecting finds it. */
export class BatchRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "BatchRefused";
  }
}

/** System identifier, timeline or WAL position is not the one this process knew: commits may have been lost. */
export class HistoryChanged extends Error {
  constructor(message: string) {
    super(message);
    this.name = "HistoryChanged";
  }
}
