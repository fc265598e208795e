import type { Confirmation } from "../domain/chain/confirmations.ts";
import type { Fence, Hash, Hex, Lane } from "../domain/lane.ts";
import type {
  Approval,
  Change,
  ExistingTransaction,
  Fenced,
  LedgerOutcome,
  LedgerTransaction,
  LedgerWrite,
  LoadedLane,
  QueuedChange,
  Spent,
  TransactionDetails,
} from "../domain/ledger/index.ts";
import type { Reservation } from "../domain/transaction/reservations.ts";
import type { Attempt, Intent, LaneTransaction, Payload } from "../domain/transaction/transaction.ts";

export type * from "../domain/ledger/message-writes.ts";
export { BatchRefused, NotLoaded } from "../domain/ledger/part.ts";
export type * from "../domain/ledger/writes.ts";

/**
 * Writes of a lane's owner. Only `LaneStore.commit` writes lane data. Each write carries a fence (instance and fencing
 * token): it is checked in the same database transaction, under a lock on the lane row.
 */
export type LaneWrite = LedgerWrite | IdentifyWrite | ConfirmationsWrite;

/** Stores the genesis hash of a chain once; every later check compares with it. */
export interface IdentifyWrite extends Fenced<"identify"> {
  readonly genesisHash: Hash;
}

/**
 * Canonical blocks of a chain, as seen by the node that decided outcomes by them. They are stored once per chain, by
 * the owner of one of its lanes.
 */
export interface ConfirmationsWrite extends Fenced<"confirmations"> {
  /**
   * Hash-linked blocks in ascending order. If the block stored at one of these heights has another hash, there is a new
   * fork: the stored blocks from that height up are replaced.
   */
  readonly blocks: readonly Confirmation[];
  /** Blocks below this height are no longer needed and may be deleted. */
  readonly pruneBelow: number;
}

/**
 * Result of one write. A write that is refused because its lane has a new owner, or that has a bad item, does not fail
 * the other writes of the batch.
 */
export type WriteOutcome =
  | { readonly status: "fenced" }
  | { readonly status: "confirmations"; readonly newFork: boolean }
  /** Result of `unwatch` only: a part of the rows was written, and the caller must repeat the write for the rest. */
  | { readonly status: "unfinished" }
  | LedgerOutcome;

/** Result of one database transaction. */
export interface Committed {
  /** One outcome for each write, in the order given. */
  readonly outcomes: readonly WriteOutcome[];
  /** The changes, for each lane that the database transaction changed. */
  readonly changes: readonly LaneChanges[];
}

/** Changes of a lane during one ownership (`token`), in order. The lane's owner applies them to its copy in memory. */
export interface LaneChanges {
  readonly lane: Lane;
  readonly token: number;
  readonly changes: readonly Change[];
}

/** Name of the successful outcome for each kind of write. A kind without an entry has the outcome "done". */
interface Answers {
  readonly allocate: "allocated";
  readonly align: "aligned";
  readonly realign: "aligned";
  readonly reconcile: "reconciled";
  readonly transition: "applied";
  readonly reserve: "reserved";
  readonly release: "released";
  readonly expire: "expired";
  readonly bind: "bound";
  readonly findSkipped: "skipped";
  readonly signMessage: "message";
  readonly settleMessage: "message";
  readonly confirmations: "confirmations";
}

/** A planned write without its proof of ownership (`fence`), which is added when the write is sent. */
export type Unfenced<K extends LaneWrite["kind"]> = Omit<Extract<LaneWrite, { readonly kind: K }>, "fence">;

export type OutcomeOf<K extends LaneWrite["kind"]> = Extract<
  WriteOutcome,
  { readonly status: K extends keyof Answers ? Answers[K] : "done" }
>;

/** An intent in the intake table. It is visible because the database transaction that inserted it has committed. */
export interface IntakeRow {
  readonly intakeId: number;
  readonly intent: Intent;
  /** Set if the intent was not approved in time, so that it must end. */
  readonly expired?: Pick<Approval, "rule" | "expiresAt">;
  /** True if the intent was waiting for approval and is approved. */
  readonly approved?: true;
  /** True if the intent's `validUntil` has passed by the database's clock, so that it must end. */
  readonly lapsed?: true;
  /** True if the node that stored the intent still waits for the result and has not yet responded to its caller. */
  readonly unanswered?: true;
}

/** Everything that an owner needs to resume a lane from the database alone. */
export interface LaneSnapshot extends LoadedLane {
  /**
   * The lane's next nonce when the feed's current epoch began: lower nonces were allocated before that. 0: the epoch
   * never changed.
   */
  readonly epochFloor: number;
  /** Genesis hash of the chain in this database; null if it is not stored yet. */
  readonly genesisHash: Hash | null;
  /** TRACKING and STUCK transactions, ascending by nonce, with every attempt's hash. */
  readonly tracking: readonly TrackedRecord[];
  /** Number of ALLOCATED transactions that wait for a signature; their rows are read in pages. */
  readonly allocated: number;
  /** Blocks with settled transactions that are still watched for reorgs: distinct heights and hashes. */
  readonly watched: readonly Confirmation[];
  /** Open reservations, with the time left by the database's clock. */
  readonly reservations: readonly OpenReservation[];
}

export interface OpenReservation extends Pick<Reservation, "reservationId" | "nonce"> {
  readonly leftMs: number;
}

export interface TrackedRecord
  extends LaneTransaction,
    Omit<TransactionDetails, "lostSightAt">,
    Pick<LedgerTransaction, "acceptedOrdinal" | "requestId"> {
  readonly attempts: readonly Attempt[];
  /** Time at which the right to send the transaction's first payload was stored; null: never. */
  readonly firstSentAt: Date | null;
  /** Time since which it is unknown whether the RPC node sent the payload; absent if that is known. */
  readonly lostSightAt?: Date;
  readonly validUntil?: Date;
  /** True if an operator has put the transaction on hold. */
  readonly held?: true;
  /** True if the transaction is being cancelled because its `validUntil` has passed. */
  readonly expired?: true;
}

/** A transaction with a `validUntil` that is not mined, not on hold, and not yet being cancelled. */
export interface ExpiringRecord extends Pick<TrackedRecord, "txId" | "nonce" | "requestId" | "createdAt"> {
  readonly state: "ALLOCATED" | "TRACKING" | "STUCK";
  readonly validUntil: Date;
  /** Time left until `validUntil` by the database's clock; 0 if it has passed. */
  readonly leftMs: number;
  /**
   * True if, when the row was read, the transaction was never signed and all later transactions could move down by one
   * nonce (domain/ledger/may-move.ts).
   */
  readonly mayGiveUp: boolean;
}

export interface StoredPayload {
  readonly payload: Payload;
  readonly gas: bigint;
}

/** A transaction that waits for its signature. `payload` is what will be signed: the caller's, or its replacement. */
export interface AllocatedRecord
  extends StoredPayload,
    Pick<TrackedRecord, "txId" | "nonce" | "requestId" | "createdAt" | "validUntil" | "held" | "expired"> {
  /** Kind of the replacement; set if the payload is not the caller's. */
  readonly changedTo?: QueuedChange["kind"];
  /** Set if policies count the transaction: the amount counted so far, which its first signature must not exceed. */
  readonly mostCost?: bigint;
  /** True if the caller chose the nonce: the transaction is never moved to another. */
  readonly pinned?: true;
}

/** A transaction that has a nonce and no outcome yet. */
export interface OpenTransaction {
  readonly txId: string;
  readonly isMined: boolean;
}

/** Request ids of one lane; the same id on another lane is another request. */
export interface AskedRequests {
  readonly lane: Lane;
  readonly requestIds: readonly string[];
}

/** A request id of a create that named a pool instead of a signer. */
export interface AskedOfPool {
  readonly chainId: number;
  readonly pool: string;
  readonly requestId: string;
}

/** The lane that a pool chose for a request. */
export interface PooledTransaction extends ExistingTransaction {
  readonly pool: string;
}

/** A request id of a lane whose transaction was deleted by retention. */
export interface SpentRequest extends Spent {
  readonly lane: Lane;
  readonly requestId: string;
}

/** A request id of a pool, on any of its lanes, whose transaction was deleted by retention. */
type SpentOfPool = Spent & AskedOfPool;

/** Load of a lane, for choosing among the signers of a pool. */
export interface LaneQueue {
  readonly lane: Lane;
  readonly suspended: boolean;
  /**
   * Number of nonces that are allocated and not mined. For a lane with more than a few hundred open transactions, mined
   * ones that are not final are counted too.
   */
  readonly ahead: number;
  /**
   * Age of the oldest transaction that is not mined, among the lane's highest nonces, by the database's clock; 0 if
   * there is none.
   */
  readonly headAgeMs: number;
  /** True if a transaction of the lane is STUCK. */
  readonly isStuck: boolean;
}

export interface LaneStore {
  /**
   * Commits writes in one database transaction. Steps: set timeouts (SET LOCAL), check the database's history, lock the
   * lanes in ascending order and check each writer's ownership, apply every write with completions last, commit. Throws
   * `StoreUnavailable` (nothing committed), `OutcomeUnknown` or `HistoryChanged`. If a single write is the cause,
   * throws `BatchRefused` or `NotLoaded`.
   */
  commit(writes: readonly LaneWrite[]): Promise<Committed>;

  /** Loads a lane for its owner; null if the lane has another owner by now. */
  loadLane(fence: Fence): Promise<LaneSnapshot | null>;
  /** ALLOCATED transactions with nonce ≥ `fromNonce`, ascending. */
  loadAllocated(lane: Lane, fromNonce: number, limit: number): Promise<readonly AllocatedRecord[]>;
  /** Transactions of a lane with a `validUntil` that are not mined, the earliest first. */
  loadExpiring(lane: Lane, limit: number): Promise<readonly ExpiringRecord[]>;
  /** Signed bytes of attempts, in the order requested. */
  loadRawTransactions(keys: readonly { readonly txId: string; readonly ordinal: number }[]): Promise<readonly Hex[]>;
  /**
   * Payloads of transactions, in the order requested: the caller's, or its replacement that was stored before signing.
   * Used where no signed bytes are stored, because the RPC node signs, or the bytes are not enough.
   */
  loadPayloads(txIds: readonly string[]): Promise<readonly StoredPayload[]>;
  /** Settled transactions of a lane that are watched for reorgs and were mined in one of these blocks. */
  loadWatched(lane: Lane, blockHashes: readonly Hash[]): Promise<readonly TrackedRecord[]>;
  /** Transactions on the lane that this API key created and that are not final. */
  openOf(lane: Lane, owner: string): Promise<readonly OpenTransaction[]>;
  /**
   * One above the highest nonce of the lane whose transaction is settled and no longer watched for reorgs, or was
   * deleted by retention; 0 if there is none.
   */
  settledBelow(lane: Lane): Promise<number>;
  /**
   * Idempotency check before nonces are allocated, for any number of lanes in one query. By request id, it finds
   * existing transactions, intents without a nonce, and hashes of deleted transactions.
   */
  findByRequestIds(asked: readonly AskedRequests[]): Promise<readonly (ExistingTransaction | SpentRequest)[]>;
  /** Lanes that pools chose for these requests; a request without a choice is missing from the result. */
  findPooled(asked: readonly AskedOfPool[]): Promise<readonly (PooledTransaction | SpentOfPool)[]>;
  /** Load of these lanes; a lane that was never used is missing from the result. */
  queues(lanes: readonly Lane[]): Promise<readonly LaneQueue[]>;
  /**
   * Visible intake rows of these lanes that are not consumed, in call order. Rows on hold are left out. Rows that wait
   * for approval are left out until they are approved, or the approval's time or their `validUntil` has passed.
   * `resting`: ids of intake rows that are left out unless their `validUntil` has passed.
   */
  loadIntake(lanes: readonly Lane[], limit: number, resting?: readonly number[]): Promise<readonly IntakeRow[]>;
}
/**
 * The database could not be reached or refused the work; no write of the batch is committed. `busy`: a lock or
 * statement timeout, worth an immediate retry.
 */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  readonly busy: boolean;
  /**
   * The missing resource in the words of the database server: disk, memory, a connection slot. Null if it named none.
   */
  readonly lacks: string | null;
  constructor(message: string, options: ErrorOptions & { readonly busy?: boolean; readonly lacks?: string } = {}) {
    super(message, options);
    this.busy = options.busy ?? false;
    this.lacks = options.lacks ?? null;
  }
}

/** The connection ended at COMMIT, and the database did not report the outcome in time. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}

/**
 * System identifier, timeline or WAL position of the database differs from what this process saw before: commits may
 * have been lost.
 */
export class HistoryChanged extends Error {
  override readonly name = "HistoryChanged";
}
