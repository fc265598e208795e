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
import type { Reservation } from "../domain/reservations.ts";
import type { Attempt, Intent, LaneTransaction, Payload } from "../domain/transaction.ts";

export { BatchRefused } from "../domain/ledger/batch-refused.ts";
export type * from "../domain/ledger/nonce-writes.ts";
export { NotLoaded } from "../domain/ledger/part.ts";
export type * from "../domain/ledger/writes.ts";
export type * from "../domain/ledger/writes.ts";

/**
 * The writes of a lane's owner. Each carries a fence, and `LaneStore.commit` is the only method that writes lane data:
 * there is no way to write without proving tenure in the same database transaction, under a lock on the lane row.
 */
export type LaneWrite = LedgerWrite | IdentifyWrite | ConfirmationsWrite;

/** Notes the first block of a chain, once; every later look is compared with it. */
export interface IdentifyWrite extends Fenced<"identify"> {
  readonly genesisHash: Hash;
}

/** The canonical blocks of a chain as the deciding node saw them, stored once per chain, kept under the fence of a lane it decides for. */
export interface ConfirmationsWrite extends Fenced<"confirmations"> {
  /** Hash-linked, ascending. A stored block with another hash at one of these heights is a new fork: replaced from there up. */
  readonly blocks: readonly { readonly number: number; readonly hash: Hash }[];
  /** Blocks below are no longer needed and may be removed. */
  readonly pruneBelow: number;
}

/** What became of one write, in the order given. A fenced lane or a bad item never fails the others. */
export type WriteOutcome =
  | { readonly status: "fenced" }
  | { readonly status: "confirmations"; readonly newFork: boolean }
  /** Of the end of a watch: a part is written, and the rest is to be written again. The writer does. */
  | { readonly status: "unfinished" }
  | LedgerOutcome;

/** What one database transaction did. */
export interface Committed {
  /** One for each write, in the order given. */
  readonly outcomes: readonly WriteOutcome[];
  /** Of the lanes that stand differently now. */
  readonly changes: readonly LaneChanges[];
}

/** What happened to a lane under this term, in the order in which it did: its owner folds it into what it remembers. */
export interface LaneChanges {
  readonly lane: Lane;
  readonly token: number;
  readonly changes: readonly Change[];
}

/** How a write is answered, unless it is fenced; those that are not named are "done". */
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
  readonly confirmations: "confirmations";
}

/** A write as it is planned: the fence is added by the term that lets it through. */
export type Unfenced<K extends LaneWrite["kind"]> = Omit<Extract<LaneWrite, { readonly kind: K }>, "fence">;

export type OutcomeOf<K extends LaneWrite["kind"]> = Extract<
  WriteOutcome,
  { readonly status: K extends keyof Answers ? Answers[K] : "done" }
>;

/** An intent waiting in the intake table, visible because its caller's transaction has committed. */
export interface IntakeRow {
  readonly intakeId: number;
  readonly intent: Intent;
  /** Set where nobody has approved it in time: it ends. */
  readonly expired?: Pick<Approval, "rule" | "expiresAt">;
  /** It waited for approval, and has it. */
  readonly approved?: true;
  /** Its `validUntil` is over by the database's clock: it ends, too. */
  readonly lapsed?: true;
  /** Its sender waits to hear what becomes of it, and has told nobody of it. */
  readonly unanswered?: true;
}

/** Everything an owner needs to take a lane up from the database alone. */
export interface LaneSnapshot extends LoadedLane {
  /** Where the lane stood when the feed's current epoch began: lower nonces were given out before that. 0: never changed. */
  readonly epochFloor: number;
  /** The first block of the chain as this database knows it; null: not noted yet. */
  readonly genesisHash: Hash | null;
  /** TRACKING and STUCK, ascending by nonce, with every attempt's hash. */
  readonly tracking: readonly TrackedRecord[];
  /** How many ALLOCATED rows wait to be signed; they are read page by page. */
  readonly allocated: number;
  /** Blocks that hold settled transactions still under watch: height and hash, distinct. */
  readonly watched: readonly { readonly number: number; readonly hash: Hash }[];
  /** Open reservations, with what is left of them by the database's clock. */
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
  /** When sending its first payload was claimed; null: never. */
  readonly firstSentAt: Date | null;
  /** When sight of it was lost, where it is still not known what a node made of it. */
  readonly lostSightAt?: Date;
  readonly validUntil?: Date;
  /** An operator holds it back. */
  readonly held?: true;
  /** It is being cancelled because its `validUntil` is over. */
  readonly expired?: true;
}

/** One that its caller wants mined by a certain time, and that is not; nobody holds it back, and nothing was done about it yet. */
export interface ExpiringRecord extends Pick<TrackedRecord, "txId" | "nonce" | "requestId" | "createdAt"> {
  readonly state: "ALLOCATED" | "TRACKING" | "STUCK";
  readonly validUntil: Date;
  /** What is left of it by the database's clock: nothing, where it is over. */
  readonly leftMs: number;
  /** Never signed, and everything above it may move down (domain/ledger/may-move.ts), as it stood when it was read. */
  readonly mayGiveUp: boolean;
}

export interface StoredPayload {
  readonly payload: Payload;
  readonly gas: bigint;
}

/** `payload` is what is to be signed: the caller's, or what was put in its place. */
export interface AllocatedRecord
  extends StoredPayload,
    Pick<TrackedRecord, "txId" | "nonce" | "requestId" | "createdAt" | "validUntil" | "held" | "expired"> {
  /** Set where the payload is not the caller's. */
  readonly changedTo?: QueuedChange["kind"];
  /** Set where policies count it: the most that they have counted, which its first signature does not exceed. */
  readonly mostCost?: bigint;
  /** Its caller named its nonce: it is moved to no other. */
  readonly pinned?: true;
}

/** One that has a nonce and no outcome yet. */
export interface OpenTransaction {
  readonly txId: string;
  readonly isMined: boolean;
}

/** Request ids of one lane; the same id of another lane is another request. */
export interface AskedRequests {
  readonly lane: Lane;
  readonly requestIds: readonly string[];
}

/** A request id that a pool was asked with. */
export interface AskedOfPool {
  readonly chainId: number;
  readonly pool: string;
  readonly requestId: string;
}

/** What a pool gave a request. */
export interface PooledTransaction extends ExistingTransaction {
  readonly pool: string;
}

/** A request id whose transaction has left by retention. */
export interface SpentRequest extends Spent {
  readonly lane: Lane;
  readonly requestId: string;
}

/** The same of a pool, on whichever lane it was. */
export type SpentOfPool = Spent & AskedOfPool;

/** How a lane stands, for those who may choose another one. */
export interface LaneQueue {
  readonly lane: Lane;
  readonly suspended: boolean;
  /** Nonces given and not mined. */
  readonly ahead: number;
  /** Of the lowest of them, by the database's clock; 0 where there is none. */
  readonly headAgeMs: number;
  /** That one is STUCK. */
  readonly isStuck: boolean;
}

export interface LaneStore {
  /**
   * One database transaction: open with SET LOCAL timeouts, check the database's history, lock the lanes ascending and
   * prove each fence, apply every write, completions last, commit. Throws `StoreUnavailable` (nothing committed),
   * `OutcomeUnknown`, `HistoryChanged`, or for the sake of one of the writes `BatchRefused` or `NotLoaded`.
   */
  commit(writes: readonly LaneWrite[]): Promise<Committed>;

  /** Null where the fence no longer holds. */
  loadLane(fence: Fence): Promise<LaneSnapshot | null>;
  /** ALLOCATED rows with nonce ≥ `fromNonce`, ascending. */
  loadAllocated(lane: Lane, fromNonce: number, limit: number): Promise<readonly AllocatedRecord[]>;
  /** Those of a lane with a `validUntil` that are not mined, the earliest first. */
  loadExpiring(lane: Lane, limit: number): Promise<readonly ExpiringRecord[]>;
  /** Raw bytes of attempts, in the order asked. */
  loadRawTransactions(keys: readonly { readonly txId: string; readonly ordinal: number }[]): Promise<readonly Hex[]>;
  /** What transactions say, for keys whose payloads are stored unsigned; in the order asked. */
  loadPayloads(txIds: readonly string[]): Promise<readonly StoredPayload[]>;
  /** Settled and watched rows of a lane that were mined in one of these blocks. */
  loadWatched(lane: Lane, blockHashes: readonly Hash[]): Promise<readonly TrackedRecord[]>;
  /** What is not final of all that belongs to this key on the lane. */
  openOf(lane: Lane, owner: string): Promise<readonly OpenTransaction[]>;
  /** One above the highest nonce of the lane that is settled and past its watch; 0 where none is. */
  settledBelow(lane: Lane): Promise<number>;
  /** The idempotency pre-check: existing transactions (or intake rows, or that one was here) by request id, of any number of lanes in one look. */
  findByRequestIds(asked: readonly AskedRequests[]): Promise<readonly (ExistingTransaction | SpentRequest)[]>;
  /** What pools gave these requests, whichever lane that was; nothing of those that none has. */
  findPooled(asked: readonly AskedOfPool[]): Promise<readonly (PooledTransaction | SpentOfPool)[]>;
  /** How these lanes stand; nothing of those that were never used. */
  queues(lanes: readonly Lane[]): Promise<readonly LaneQueue[]>;
  /** Visible intake rows of these lanes that are not consumed, in call order; not those that wait for approval, unless they have it or their time is over; none that is held back; of `resting` those alone whose `validUntil` is over. */
  loadIntake(lanes: readonly Lane[], limit: number, resting?: readonly number[]): Promise<readonly IntakeRow[]>;
}
/** The database could not be reached or refused the work; nothing of the batch is committed. `busy` = a lock or statement timeout, worth an immediate retry. */
export class StoreUnavailable extends Error {
  readonly busy: boolean;
  /** In the server's words: a disk with room, memory, a place for another connection. Null: it did not say. */
  readonly lacks: string | null;
  constructor(message: string, options: ErrorOptions & { readonly busy?: boolean; readonly lacks?: string } = {}) {
    super(message, options);
    this.name = "StoreUnavailable";
    this.busy = options.busy ?? false;
    this.lacks = options.lacks ?? null;
  }
}

/** The connection died at COMMIT and the database did not say in time what became of it. */
export class OutcomeUnknown extends Error {
  override readonly name = "OutcomeUnknown";
}

/** System identifier, timeline or WAL position is not the one this process knew: commits may have been lost. */
export class HistoryChanged extends Error {
  override readonly name = "HistoryChanged";
}
