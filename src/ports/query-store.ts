import type { Address, Hash, Hex, Lane } from "../domain/lane.ts";
import type { Approval, Completion, LedgerAttempt, PolicyUse, WaitingIntent } from "../domain/ledger/index.ts";
import type { Use } from "../domain/policy/use.ts";
import type { Reservation } from "../domain/reservations.ts";
import type { Intent } from "../domain/transaction.ts";
import type { State, Status, TransitionEvent } from "../domain/transitions.ts";
import type { BlockPlace } from "./chain.ts";
import type { Decision, LaneDecision, LaneSnapshot, OrderKey, TrackedRecord } from "./lane-store.ts";
import type { LeaseRecord } from "./lease-store.ts";

export interface TransactionRecord
  extends Omit<Intent, "fingerprint" | "allowNoCode">,
    Status,
    Pick<TrackedRecord, "receipt" | "lastError" | "submitAttempts" | "lastSubmittedAt" | "createdAt"> {
  /** Null while CREATED, and for ever where refused before allocation. */
  readonly nonce: number | null;
  /** Given or estimated; null while CREATED. */
  readonly gas: bigint | null;
  readonly attempts: readonly AttemptRecord[];
  readonly updatedAt: Date;
  readonly confirmedAt: Date | null;
  /** While it waits for approval: its row in the intake table, by which rule, and until when. */
  readonly awaiting?: Pick<WaitingIntent, "intakeId"> & Pick<Approval, "rule" | "expiresAt">;
  /** From its approval until it has a nonce: its row in the intake table. */
  readonly approved?: Pick<WaitingIntent, "intakeId">;
  /** While it has no nonce yet: its row in the intake table. */
  readonly intakeId?: number;
  /** Since when an operator holds it back. */
  readonly heldSince?: Date;
  /** Since when it is being cancelled because its `validUntil` is over. */
  readonly expiredAt?: Date;
}

export interface FirstHash {
  readonly txId: string;
  readonly state: State;
  readonly txHash: Hash | null;
}

/** From its first claim on the network may know it. */
export interface AttemptRecord extends LedgerAttempt {
  readonly createdAt: Date;
}

/** Repeats of one event are one row: how often, first and last. */
export interface HistoryRecord extends Status {
  readonly ordinal: number;
  readonly event: TransitionEvent;
  readonly fromState: State | null;
  readonly nodeId: string | null;
  readonly token: number | null;
  readonly reason: string | null;
  /** Where an operator, the hook or a policy decided this step. */
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
  /** The last transaction id of the page before. */
  readonly after?: string;
  readonly limit: number;
}

export interface CompletionRecord extends Completion {
  readonly lane: Lane;
  readonly seq: number;
  /** The epoch it was written in: that of the feed, or an older one. */
  readonly epoch: number;
  readonly at: Date;
}

export interface FeedPosition {
  readonly epoch: number;
  readonly lastSeq: number;
  /** Numbers up to here are no longer kept. */
  readonly truncatedThrough: number;
  /** The number below which the current epoch does not begin. */
  readonly epochStartsAfter: number;
}

/** Where the feed stands and what it says after a number, both of one moment: no item is of a later epoch. */
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

/** Which lanes of a list; absent: all. */
export interface LaneFilter {
  readonly chainId?: number;
  /** The node that acts for them. */
  readonly owner?: string;
  /** Suspended, stuck, with a nonce that nothing holds, or with something that is held back. */
  readonly needsAttention?: boolean;
}

export interface LaneDecisionRecord extends Omit<LaneDecision, "order"> {
  readonly nodeId: string | null;
  readonly token: number;
  readonly at: Date;
}

export interface PolicyUsage {
  /** By the database's clock, which windows are by. */
  readonly at: Date;
  readonly signers: readonly { readonly lane: Lane; readonly use: Use }[];
  readonly keys: readonly { readonly chainId: number; readonly owner: string; readonly use: Use }[];
}

/** Reads for callers and operators; any node answers them. */
/** Everything by state: what is settled is counted by its outcome, however long ago. */
export interface Census {
  readonly states: Readonly<Record<State, number>>;
  /** Settled, and still watched: a reorg could undo them. */
  readonly watched: Readonly<Record<"CONFIRMED" | "FAILED_FINAL", number>>;
  /** Of what is neither settled nor STUCK nor awaits an approval; null: there is none. */
  readonly oldestPendingAgeMs: number | null;
  /** Lanes with something open that nobody who is alive holds. */
  readonly unownedLanes: number;
  readonly suspendedLanes: number;
}

export interface QueryStore {
  transaction(txId: string): Promise<TransactionRecord | null>;
  transactionByRequest(lane: Lane, requestId: string): Promise<TransactionRecord | null>;
  /** The pool that it was asked of; null: its caller named the signer. */
  poolOf(txId: string): Promise<string | null>;
  /** What holds this nonce of the lane, final or not. */
  transactionAt(lane: Lane, nonce: number): Promise<TransactionRecord | null>;
  /** Those of them that have a row of their own, each with its first attempt's hash; null: not signed. */
  firstHashes(txIds: readonly string[]): Promise<readonly FirstHash[]>;
  transactions(filter: ListFilter): Promise<readonly TransactionRecord[]>;
  history(txId: string): Promise<readonly HistoryRecord[]>;
  reservation(reservationId: string): Promise<Reservation | null>;
  /** Stored canonical blocks above the receipt's, ascending, at most `limit`. */
  confirmations(chainId: number, aboveBlock: number, limit: number): Promise<readonly BlockPlace[]>;
  /** One snapshot. Read apart, items of an epoch that begins in between would go out under the one before. */
  feed(after: number, limit: number): Promise<FeedPage>;
  /** The known lanes of one signer, by chain. */
  lanes(signer: Address): Promise<readonly LaneRecord[]>;
  /** At most `limit` known lanes by signer and chain, after this one where given. */
  lanesAfter(after: Lane | null, limit: number, filter?: LaneFilter): Promise<readonly LaneRecord[]>;
  /** What people decided about a lane, newest first, at most `limit`. */
  laneDecisions(lane: Lane, limit: number): Promise<readonly LaneDecisionRecord[]>;
  /** The fingerprint of the order that was carried out under this key; null: none was. */
  carriedOut(lane: Lane, order: Pick<OrderKey, "subject" | "key">): Promise<Hex | null>;
  /** What is used of the limits of a lane's signer and of a key: that of the transaction where one is named. */
  policyUse(lane: Lane, of: { readonly txId?: string; readonly owner?: string }): Promise<PolicyUse>;
  /** Everything that was counted in the present hour and day, by signer and by key. */
  allPolicyUse(): Promise<PolicyUsage>;
  /** What the whole database holds, of every node's lanes; for the gauges. */
  census(): Promise<Census>;
  /** Resolves when the database answers a trivial read. */
  ping(): Promise<void>;
}
