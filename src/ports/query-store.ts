import type { Address, Hash, Hex, Lane } from "../domain/lane.ts";
import type { Approval, Completion, LedgerAttempt, PolicyUse, WaitingIntent } from "../domain/ledger/index.ts";
import type { Use } from "../domain/policy/use.ts";
import type { Reservation } from "../domain/transaction/reservations.ts";
import type { Intent } from "../domain/transaction/transaction.ts";
import type { State, Status, TransitionEvent } from "../domain/transaction/transitions.ts";
import type { BlockPlace } from "./chain.ts";
import type { Decision, LaneDecision, LaneSnapshot, OrderKey, TrackedRecord } from "./lane-store.ts";
import type { LeaseRecord } from "./lease-store.ts";

export interface TransactionRecord
  extends Omit<Intent, "fingerprint" | "allowNoCode">,
    Status,
    Pick<TrackedRecord, "receipt" | "lastError" | "submitAttempts" | "lastSubmittedAt" | "createdAt"> {
  /** Null while CREATED, and always if it was refused before allocation. */
  readonly nonce: number | null;
  /** Given or estimated; null while CREATED. */
  readonly gas: bigint | null;
  readonly attempts: readonly AttemptRecord[];
  readonly updatedAt: Date;
  readonly confirmedAt: Date | null;
  /** While it waits for approval: its intake row, the rule, and the deadline. */
  readonly awaiting?: Pick<WaitingIntent, "intakeId"> & Pick<Approval, "rule" | "expiresAt">;
  /** Its intake row, from its approval until it has a nonce. */
  readonly approved?: Pick<WaitingIntent, "intakeId">;
  /** Its intake row while it has no nonce. */
  readonly intakeId?: number;
  /** Since when an operator holds it back. */
  readonly heldSince?: Date;
  /** Since when it is being cancelled because its `validUntil` is over. */
  readonly expiredAt?: Date;
}

export interface FirstHash extends Pick<TransactionRecord, "txId" | "state">, Pick<LedgerAttempt, "txHash"> {}

/** From its first claim on, the network may know it. */
export interface AttemptRecord extends LedgerAttempt {
  readonly createdAt: Date;
}

/** Repeats of one event are one row: count, first and last time. */
export interface HistoryRecord extends Status {
  readonly ordinal: number;
  readonly event: TransitionEvent;
  readonly fromState: State | null;
  readonly nodeId: string | null;
  readonly token: number | null;
  readonly reason: string | null;
  /** Set if an operator, the hook or a policy decided this step. */
  readonly decision?: Decision;
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
}

export interface ListFilter {
  readonly chainId?: number;
  readonly signer?: Address;
  readonly state?: State;
  readonly requestId?: string;
  readonly txHash?: Hash;
  readonly order: "newest" | "oldest";
  /** Last transaction id of the previous page. */
  readonly after?: string;
  readonly limit: number;
}

export interface CompletionRecord extends Completion {
  readonly lane: Lane;
  readonly seq: number;
  /** Epoch in which it was written: the feed's current one, or an older one. */
  readonly epoch: number;
  readonly at: Date;
}

export interface FeedPosition {
  readonly epoch: number;
  readonly lastSeq: number;
  /** Completions up to this number are no longer kept. */
  readonly truncatedThrough: number;
  /** First number of the current epoch, or lower. */
  readonly epochStartsAfter: number;
}

/** State of the feed and its items after a number, from one snapshot: no item is of a later epoch. */
export interface FeedPage extends FeedPosition {
  readonly items: readonly CompletionRecord[];
}

export interface LaneRecord extends LeaseRecord, Pick<LaneSnapshot, "cursor" | "suspendedBy" | "holes"> {
  /** CREATED, ALLOCATED and TRACKING. */
  readonly pending: number;
  readonly confirmed: number;
  readonly failed: number;
  readonly stuck: number;
  /** Open reservations. */
  readonly reserved: number;
  readonly oldestPendingAt: Date | null;
  readonly headOfLine:
    | (Pick<TrackedRecord, "txId" | "nonce" | "state" | "createdAt"> & {
        /** An operator holds it back. */
        readonly held: boolean;
      })
    | null;
}

/** Filter of a list of lanes; absent: all. */
export interface LaneFilter {
  readonly chainId?: number;
  /** Owner of the lanes. */
  readonly owner?: string;
  /** Lanes that are suspended or stuck, have a hole, or have something held back. */
  readonly needsAttention?: boolean;
}

export interface LaneDecisionRecord extends Omit<LaneDecision, "order"> {
  readonly nodeId: string | null;
  readonly token: number;
  readonly at: Date;
}

export interface PolicyUsage {
  /** Time of the database's clock, which policy windows use. */
  readonly at: Date;
  readonly signers: readonly { readonly lane: Lane; readonly use: Use }[];
  readonly keys: readonly { readonly chainId: number; readonly owner: string; readonly use: Use }[];
}

/** Reads for callers and operators; any node answers them. */
/** Counts by state. Settled transactions count by their outcome, at any age. */
export interface Census {
  readonly states: Readonly<Record<State, number>>;
  /** Settled and still watched: a reorg could undo them. */
  readonly watched: Readonly<Record<"CONFIRMED" | "FAILED_FINAL", number>>;
  /** Age of the oldest that is neither settled, nor STUCK, nor waiting for approval; null if there is none. */
  readonly oldestPendingAgeMs: number | null;
  /** Lanes with open transactions and no live owner. */
  readonly unownedLanes: number;
  readonly suspendedLanes: number;
}

export interface QueryStore {
  transaction(txId: string): Promise<TransactionRecord | null>;
  transactionByRequest(lane: Lane, requestId: string): Promise<TransactionRecord | null>;
  /** The pool that the caller named; null if it named the signer. */
  poolOf(txId: string): Promise<string | null>;
  /** The transaction, final or not, that has this nonce of the lane. */
  transactionAt(lane: Lane, nonce: number): Promise<TransactionRecord | null>;
  /** Those that have a transaction row, each with the hash of its first attempt; null if not signed. */
  firstHashes(txIds: readonly string[]): Promise<readonly FirstHash[]>;
  transactions(filter: ListFilter): Promise<readonly TransactionRecord[]>;
  history(txId: string): Promise<readonly HistoryRecord[]>;
  reservation(reservationId: string): Promise<Reservation | null>;
  /** Stored canonical blocks above the receipt's, ascending, at most `limit`. */
  confirmations(chainId: number, aboveBlock: number, limit: number): Promise<readonly BlockPlace[]>;
  /**
   * Reads one snapshot. In two reads, items of an epoch that begins in between would be reported under the previous
   * one.
   */
  feed(after: number, limit: number): Promise<FeedPage>;
  /** The known lanes of one signer, by chain. */
  lanes(signer: Address): Promise<readonly LaneRecord[]>;
  /** At most `limit` known lanes by signer and chain, after this one if given. */
  lanesAfter(after: Lane | null, limit: number, filter?: LaneFilter): Promise<readonly LaneRecord[]>;
  /** Decisions of people about a lane, newest first, at most `limit`. */
  laneDecisions(lane: Lane, limit: number): Promise<readonly LaneDecisionRecord[]>;
  /** Fingerprint of the action that was carried out under this key; null if none was. */
  carriedOut(lane: Lane, order: Pick<OrderKey, "subject" | "key">): Promise<Hex | null>;
  /** Use of the limits of a lane's signer and of an API key: the transaction's, if one is given. */
  policyUse(lane: Lane, of: { readonly txId?: string; readonly owner?: string }): Promise<PolicyUse>;
  /** All counts of the current hour and day, by signer and by key. */
  allPolicyUse(): Promise<PolicyUsage>;
  /** Figures over all lanes of the database, for the gauges. */
  census(): Promise<Census>;
  /** Resolves when the database answers a trivial read. */
  ping(): Promise<void>;
}
