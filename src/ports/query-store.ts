import type { TransactionCost } from "../domain/figures/costs.ts";
import type { Limits } from "../domain/keys/principal.ts";
import type { Address, Hash, Hex, Lane } from "../domain/lane.ts";
import type { Approval, Completion, LedgerAttempt, PolicyUse, WaitingIntent } from "../domain/ledger/index.ts";
import type { SignatureRecord, SignatureState } from "../domain/messages/record.ts";
import type { MessageUse } from "../domain/policy/message-rules.ts";
import type { Use } from "../domain/policy/use.ts";
import type { Reservation } from "../domain/transaction/reservations.ts";
import type { Intent } from "../domain/transaction/transaction.ts";
import type { State, Status, TransitionEvent } from "../domain/transaction/transitions.ts";
import type { BlockPlace } from "./chain.ts";
import type { ActionKey, Decision, LaneDecision, LaneSnapshot, TrackedRecord } from "./lane-store.ts";
import type { LeaseRecord } from "./lease-store.ts";

export interface TransactionRecord
  extends Omit<Intent, "fingerprint" | "allowNoCode">,
    Status,
    Pick<TrackedRecord, "receipt" | "lastError" | "submitAttempts" | "lastSubmittedAt" | "createdAt"> {
  /** Nonce of the transaction; null while it is CREATED, and for ever if it was refused before it got one. */
  readonly nonce: number | null;
  /** Gas limit, given or estimated; null while CREATED. */
  readonly gas: bigint | null;
  readonly attempts: readonly AttemptRecord[];
  readonly updatedAt: Date;
  readonly confirmedAt: Date | null;
  /**
   * Set while the transaction waits for approval: its intake row, the policy rule that requires the approval, and the
   * deadline.
   */
  readonly awaiting?: Pick<WaitingIntent, "intakeId"> & Pick<Approval, "rule" | "expiresAt">;
  /** The transaction's row in the intake table (intents without a nonce), from its approval until it has a nonce. */
  readonly approved?: Pick<WaitingIntent, "intakeId">;
  /** The transaction's row in the intake table (intents without a nonce), while it has no nonce. */
  readonly intakeId?: number;
  /** Time since which an operator has put the transaction on hold; absent: not on hold. */
  readonly heldSince?: Date;
  /** Time since which the transaction is being cancelled because its `validUntil` has passed. */
  readonly expiredAt?: Date;
}

export interface FirstHash extends Pick<TransactionRecord, "txId" | "state">, Pick<LedgerAttempt, "txHash"> {}

/** An attempt as stored. Once the right to send it is stored, it may be on the network. */
export interface AttemptRecord extends LedgerAttempt {
  readonly createdAt: Date;
}

/** One row of a transaction's history. Repeats of one event share a row, with count, first and last time. */
export interface HistoryRecord extends Status {
  readonly ordinal: number;
  readonly event: TransitionEvent;
  readonly fromState: State | null;
  readonly nodeId: string | null;
  readonly token: number | null;
  readonly reason: string | null;
  /** Set if an operator, the stuck hook or a policy decided this step. */
  readonly decision?: Decision;
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
}

export interface ListFilter {
  readonly chainId?: number;
  readonly signer?: Address;
  /** Only the lanes of an API key. A page and its end must not depend on rows of other lanes. */
  readonly within?: Limits;
  readonly state?: State;
  readonly requestId?: string;
  readonly txHash?: Hash;
  /** Only transactions that were created at this time or later, by the database's clock. */
  readonly createdAfter?: Date;
  /** Only transactions that were created before this time, by the database's clock. */
  readonly createdBefore?: Date;
  readonly order: "newest" | "oldest";
  /** Last transaction id of the previous page. */
  readonly after?: string;
  readonly limit: number;
}

/** Transactions whose costs are read: those of a list. */
export type CostFilter = Pick<
  ListFilter,
  "chainId" | "signer" | "within" | "createdAfter" | "createdBefore" | "order" | "after" | "limit"
>;

export interface CostPage {
  readonly items: readonly TransactionCost[];
  /** Id of the page's last transaction, for the next `after`; null at the end of the range. */
  readonly next: string | null;
}

export interface CompletionRecord extends Completion {
  readonly lane: Lane;
  readonly seq: number;
  /** Feed epoch in which the completion was written: the current one, or an older one. */
  readonly epoch: number;
  readonly at: Date;
}

export interface FeedPosition {
  readonly epoch: number;
  readonly lastSeq: number;
  /** Completions up to this sequence number have been deleted. */
  readonly truncatedThrough: number;
  /** All completions of the current epoch have higher sequence numbers than this one. */
  readonly epochStartsAfter: number;
}

/**
 * State of the feed, and its items after a sequence number. Both come from one database snapshot, so no item is of a
 * later epoch.
 */
export interface FeedPage extends FeedPosition {
  readonly items: readonly CompletionRecord[];
}

export interface LaneRecord extends LeaseRecord, Pick<LaneSnapshot, "cursor" | "suspendedBy" | "holes"> {
  /** Number of transactions that are CREATED, ALLOCATED or TRACKING. */
  readonly pending: number;
  readonly confirmed: number;
  readonly failed: number;
  readonly stuck: number;
  /** Number of open reservations. */
  readonly reserved: number;
  readonly oldestPendingAt: Date | null;
  readonly headOfLine:
    | (Pick<TrackedRecord, "txId" | "nonce" | "state" | "createdAt"> & {
        /** True if an operator has put the transaction on hold. */
        readonly held: boolean;
      })
    | null;
}

/** Filter of a list of lanes; an absent field filters nothing. */
export interface LaneFilter {
  readonly chainId?: number;
  /** Only the lanes of an API key. */
  readonly within?: Limits;
  /** Node that owns the lanes. */
  readonly owner?: string;
  /** True: only lanes that are suspended, stuck or unowned, or have a nonce gap or a transaction on hold. */
  readonly needsAttention?: boolean;
}

export interface LaneDecisionRecord extends Omit<LaneDecision, "actionKey"> {
  readonly nodeId: string | null;
  readonly token: number;
  readonly at: Date;
}

export interface MessageCounts {
  readonly at: Date;
  readonly used: ReadonlyMap<string, MessageUse>;
}

export interface PolicyUsage {
  /** Time of the read, by the database's clock, which also decides the hour and day of the policy limits. */
  readonly at: Date;
  readonly signers: readonly { readonly lane: Lane; readonly use: Use }[];
  readonly keys: readonly { readonly chainId: number; readonly owner: string; readonly use: Use }[];
}

/** Number of transactions by state. Settled transactions count by their outcome, at any age. */
export interface Census {
  readonly states: Readonly<Record<State, number>>;
  /** Number of settled transactions that a reorg could still undo, so that they are still watched. */
  readonly watched: Readonly<Record<"CONFIRMED" | "FAILED_FINAL", number>>;
  /**
   * Age of the oldest transaction that is neither settled, nor STUCK, nor waiting for approval; null if there is none.
   */
  readonly oldestPendingAgeMs: number | null;
  /** Number of lanes with open transactions and no live owner. */
  readonly unownedLanes: number;
  readonly suspendedLanes: number;
}

/** Filter of a list of requested signatures; an absent field filters nothing. */
export interface SignatureFilter {
  readonly signer?: Address;
  readonly chainId?: number;
  /** Name of the API key that asked. */
  readonly owner?: string;
  /** Only those in this state; of those that wait for approval, only those that still may be approved. */
  readonly state?: SignatureState;
  /** Only signatures for this domain, as computed by `domainOf` (src/domain/messages). */
  readonly domain?: string;
  readonly within?: Limits;
  /** Id of the last signature of the page before. */
  readonly after?: string;
  readonly limit: number;
}

export interface QueryStore {
  transaction(txId: string): Promise<TransactionRecord | null>;
  transactionByRequest(lane: Lane, requestId: string): Promise<TransactionRecord | null>;
  /** The pool that the caller of the transaction named; null if it named a signer. */
  poolOf(txId: string): Promise<string | null>;
  /** The transaction, final or not, that has this nonce in the lane. */
  transactionAt(lane: Lane, nonce: number): Promise<TransactionRecord | null>;
  /**
   * The hash of each transaction's first attempt, or null if it is not signed. An alias gets the hash of the
   * transaction that it stands for. Ids without a transaction row are left out.
   */
  firstHashes(txIds: readonly string[]): Promise<readonly FirstHash[]>;
  transactions(filter: ListFilter): Promise<readonly TransactionRecord[]>;
  /** Costs of one page of transactions, in any order; intents that wait for a nonce have none. */
  costs(filter: CostFilter): Promise<CostPage>;
  /** Costs of these transactions, in any order; those that do not exist are left out. */
  costsOf(txIds: readonly string[]): Promise<readonly TransactionCost[]>;
  history(txId: string): Promise<readonly HistoryRecord[]>;
  reservation(reservationId: string): Promise<Reservation | null>;
  signature(signatureId: string): Promise<SignatureRecord | null>;
  /** Requested signatures, newest first. */
  signatures(filter: SignatureFilter): Promise<readonly SignatureRecord[]>;
  /** Stored canonical blocks above `aboveBlock`, the block of the receipt; ascending, at most `limit`. */
  confirmations(chainId: number, aboveBlock: number, limit: number): Promise<readonly BlockPlace[]>;
  /**
   * Reads a page of the feed in one database snapshot. With two separate reads, items of an epoch that begins in
   * between would be reported under the previous epoch.
   */
  feed(after: number, limit: number): Promise<FeedPage>;
  /** The known lanes of one signer, by chain. */
  lanes(signer: Address): Promise<readonly LaneRecord[]>;
  /** At most `limit` known lanes, ordered by signer and chain, starting after the given one. */
  lanesAfter(after: Lane | null, limit: number, filter?: LaneFilter): Promise<readonly LaneRecord[]>;
  /** Operators' decisions about a lane, newest first, at most `limit`. */
  laneDecisions(lane: Lane, limit: number): Promise<readonly LaneDecisionRecord[]>;
  /** Fingerprint of the operator's action that was carried out under this idempotency key; null if none was. */
  carriedOut(lane: Lane, actionKey: Pick<ActionKey, "subject" | "key">): Promise<Hex | null>;
  /**
   * Amounts that the lane's signer and one API key have used of their limits. With `txId`, it is the key that created
   * the transaction.
   */
  policyUse(lane: Lane, of: { readonly txId?: string; readonly owner?: string }): Promise<PolicyUse>;
  /** Sums of the lane's rules about messages, by the rule's name, and the database's time. */
  messageUse(lane: Lane): Promise<MessageCounts>;
  /** Amounts used of all limits in the current hour and day, by signer and by API key. */
  allPolicyUse(): Promise<PolicyUsage>;
  /** Totals over all lanes of the database, for the gauges. */
  census(): Promise<Census>;
  /** Resolves when the database has responded to a trivial read. */
  ping(): Promise<void>;
}
