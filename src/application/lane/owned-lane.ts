import { type Fence, type Hash, type Hex, type Lane, type LaneKey, laneKey } from "../../domain/lane.ts";
import type { Attempt, Receipt } from "../../domain/transaction.ts";
import type { Status } from "../../domain/transitions.ts";
import type { AllocatedRecord, LaneSnapshot, SuspendedBy, TrackedRecord } from "../../ports/lane-store.ts";
import type { Activity } from "./activity.ts";

/** A signed transaction on its way, as its owner remembers it. The database holds the truth; this may be thrown away. */
export interface Tracked {
  readonly txId: string;
  readonly nonce: number;
  readonly requestId: string | null;
  readonly createdAt: Date;
  status: Status;
  readonly attempts: Attempt[];
  receipt: Receipt | null;
  submitAttempts: number;
  lastError: string | null;
  /** Which attempt is to be sent next, and its bytes where they are at hand. */
  sendOrdinal: number;
  rawTransaction: Hex | null;
  /** Sending `sendOrdinal` is claimed under this term and has not been tried yet. */
  claimed: boolean;
  /** Monotonic; null: nothing is to be sent until something happens. */
  nextSendAtMs: number | null;
  /** Unanswered or refused submissions in a row. */
  failures: number;
  sending: boolean;
  /** Monotonic time of the last look for a receipt by hash, or one of the two constants below. */
  receiptCheckedAtMs: number;
}

export interface IndexedAttempt {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
}

/** All attempt hashes a node tracks on one chain: what a new block's transactions are matched against. */
export type HashIndex = Map<Hash, IndexedAttempt>;

/** A look by hash is owed before anything is sent again. */
export const RECEIPT_OWED = Number.NEGATIVE_INFINITY;
/** Never looked for by hash: the next pass does, and nothing waits for it. */
export const LONG_AGO = Number.MIN_SAFE_INTEGER;

/** How many ALLOCATED rows are kept at hand; the rest waits in the database. */
const BACKLOG_LIMIT = 1_024;

/** One tenure of one lane: everything its owner works with, built from the database and dropped with the term. */
export class OwnedLane {
  readonly fence: Fence;
  readonly lane: Lane;
  readonly key: LaneKey;
  cursor: number | null;
  suspendedBy: SuspendedBy | null;
  /** False: the database's history changed, and the lane has not been compared with the chain since. */
  reconciled: boolean;
  /** Set once: fenced, released or about to be read again. Work that finds it set ends without another effect. */
  stopped = false;
  /** Creates that were let in and have no fate yet. */
  creating = 0;
  /** Monotonic time when the chain's count was last compared with the cursor; null: never under this term. */
  nonceCheckedAtMs: number | null = null;
  /** What that comparison proved; no nonce below it is given, also while the cursor has not followed yet. */
  provenCount = 0;
  /** Broadcast, not mined. At most the in-flight window. */
  readonly unmined = new Map<number, Tracked>();
  /** Mined, not final. */
  readonly mined = new Map<number, Tracked>();
  /** Blocks that hold settled transactions still under watch. By hash: a height may have had two, one of them gone. */
  readonly watched = new Map<Hash, number>();
  signing: Activity | null = null;
  broadcasting: Activity | null = null;
  private readonly index: HashIndex;
  private backlog: AllocatedRecord[] = [];
  private moreInDatabase: boolean;
  /** The highest nonce that was allocated here and left to be read from the database. */
  private leftThrough = -1;

  constructor(fence: Fence, snapshot: LaneSnapshot, index: HashIndex) {
    this.fence = fence;
    this.lane = fence.lane;
    this.key = laneKey(fence.lane);
    this.cursor = snapshot.cursor;
    this.suspendedBy = snapshot.suspendedBy;
    this.reconciled = snapshot.reconciled;
    this.index = index;
    this.moreInDatabase = snapshot.allocated > 0;
    for (const record of snapshot.tracking) this.track(resumed(record));
    for (const block of snapshot.watched) this.watched.set(block.hash, block.number);
  }

  /** Nothing may be sent now. */
  get suspended(): boolean {
    return this.suspendedBy !== null || !this.reconciled;
  }

  /** No nonce may be given either: the database may have forgotten some that were. */
  get held(): boolean {
    return this.suspendedBy === "HISTORY" || !this.reconciled;
  }

  /** Nothing in flight, waiting or watched: the lane may be let go. */
  get idle(): boolean {
    return !this.hasUnmined() && this.mined.size === 0 && this.watched.size === 0;
  }

  hasUnmined(): boolean {
    return this.unmined.size > 0 || this.backlog.length > 0 || this.moreInDatabase || this.creating > 0;
  }

  /** True while a transaction before these `own` creates may still change the state they would meet. */
  hasUnminedBefore(own: number): boolean {
    return this.unmined.size > 0 || this.backlog.length > 0 || this.moreInDatabase || this.creating > own;
  }

  /** The lowest nonce a node must still mine; null where none is signed. */
  headOfLine(): number | null {
    let lowest: number | null = null;
    for (const nonce of this.unmined.keys()) if (lowest === null || nonce < lowest) lowest = nonce;
    return lowest;
  }

  pendingDepth(): number {
    return this.unmined.size + this.mined.size + this.backlog.length;
  }

  oldestPendingAt(): Date | null {
    const first = this.headOfLine();
    const tx = first === null ? this.mined.values().next().value : this.unmined.get(first);
    return tx?.createdAt ?? this.backlog[0]?.createdAt ?? null;
  }

  track(tx: Tracked): void {
    (tx.receipt === null ? this.unmined : this.mined).set(tx.nonce, tx);
    for (const attempt of tx.attempts) this.index.set(attempt.txHash, { lane: this, tx });
  }

  mine(tx: Tracked, receipt: Receipt): void {
    tx.receipt = receipt;
    tx.nextSendAtMs = null;
    tx.rawTransaction = null;
    this.unmined.delete(tx.nonce);
    this.mined.set(tx.nonce, tx);
  }

  unmine(tx: Tracked): void {
    tx.receipt = null;
    this.mined.delete(tx.nonce);
    this.unmined.set(tx.nonce, tx);
  }

  settle(tx: Tracked): void {
    this.mined.delete(tx.nonce);
    this.unmined.delete(tx.nonce);
    for (const attempt of tx.attempts) this.index.delete(attempt.txHash);
    if (tx.receipt !== null) this.watched.set(tx.receipt.blockHash, tx.receipt.blockNumber);
  }

  /** Newly allocated rows: kept at hand while they follow on, else left to be read from the database in their turn. */
  enqueue(records: readonly AllocatedRecord[]): void {
    for (const record of records) {
      if (record.nonce <= this.atHandThrough()) continue; // a page that was read meanwhile has brought it
      if (this.moreInDatabase || this.backlog.length >= BACKLOG_LIMIT) {
        this.moreInDatabase = true;
        this.leftThrough = record.nonce;
      } else this.backlog.push(record);
    }
  }

  /** Where the next page begins, where the backlog has run dry and the database has more. */
  missingFrom(): number | null {
    if (!this.moreInDatabase || this.backlog.length > 0) return null;
    return this.nextUnsigned;
  }

  refill(page: readonly AllocatedRecord[], limit: number): void {
    this.backlog.push(...page);
    // What was allocated and left while the page was on its way is not on it, and must not be forgotten: a hole.
    this.moreInDatabase = page.length === limit || this.leftThrough > this.atHandThrough();
  }

  /** The next transactions that may be signed: in nonce order, none beyond the window over the head of line. */
  toSign(window: number, limit: number): readonly AllocatedRecord[] {
    const head = this.headOfLine() ?? this.backlog[0]?.nonce ?? 0;
    const room = Math.min(limit, window - this.unmined.size);
    const fitting = this.backlog.slice(0, Math.max(0, room));
    return fitting.filter((record) => record.nonce < head + window);
  }

  signed(count: number): void {
    const last = this.backlog[count - 1];
    if (last !== undefined) this.nextUnsigned = last.nonce + 1;
    this.backlog.splice(0, count);
  }

  /** Due to be sent, ascending by nonce. What owes a look for its receipt waits for that. */
  toSend(nowMs: number, limit: number): readonly Tracked[] {
    const due: Tracked[] = [];
    for (const tx of this.unmined.values()) {
      const isDue = tx.nextSendAtMs !== null && tx.nextSendAtMs <= nowMs && !tx.sending;
      if (isDue && tx.receiptCheckedAtMs !== RECEIPT_OWED) due.push(tx);
    }
    return due.sort((a, b) => a.nonce - b.nonce).slice(0, limit);
  }

  /** Ends this tenure in memory: nothing of it is found by hash any more. */
  stop(): void {
    this.stopped = true;
    for (const tx of [...this.unmined.values(), ...this.mined.values()]) {
      for (const attempt of tx.attempts) {
        if (this.index.get(attempt.txHash)?.lane === this) this.index.delete(attempt.txHash);
      }
    }
  }

  private atHandThrough(): number {
    return this.backlog.at(-1)?.nonce ?? this.nextUnsigned - 1;
  }

  private nextUnsigned = 0;
}

/** A row as a new owner finds it: whether it was sent, nobody knows, so its receipt is looked for first. */
export function resumed(record: TrackedRecord): Tracked {
  return {
    txId: record.txId,
    nonce: record.nonce,
    requestId: record.requestId,
    createdAt: record.createdAt,
    status: { state: record.state, subState: record.subState },
    attempts: [...record.attempts],
    receipt: record.receipt,
    submitAttempts: record.submitAttempts,
    lastError: null,
    sendOrdinal: record.attempts.at(-1)?.ordinal ?? 1,
    rawTransaction: null,
    claimed: false,
    nextSendAtMs: record.receipt === null ? 0 : null,
    failures: 0,
    sending: false,
    receiptCheckedAtMs: RECEIPT_OWED,
  };
}
