import type { Kill } from "../domain/cluster/kills.ts";
import type { Address, Hash } from "../domain/lane.ts";
import type { Reservation } from "../domain/transaction/reservations.ts";
import type { CREATE_FIELDS } from "../domain/transaction/transaction.ts";
import type { Trouble } from "../domain/troubles/rows.ts";
import type { ShownOutcome } from "../ports/chain.ts";
import type { ForwardedAnswer } from "../ports/peers.ts";
import type {
  CompletionRecord,
  HistoryRecord,
  LaneFilter,
  ListFilter,
  TransactionRecord,
} from "../ports/query-store.ts";

export type TransactionAction =
  | "resubmit"
  | "reprice"
  | "cancel"
  | "replace"
  | "resolve"
  | "approve"
  | "reject"
  | "suspend"
  | "resume";
export type LaneAction = "suspend" | "resume" | "realign";

/** An operator's action, as it arrives. */
interface Order {
  /** The unparsed body: `reason`, and the action's own fields. */
  readonly request: unknown;
  /** Name for the audit: `operator:<name>`. */
  readonly actor: string;
  /** The caller's own: an action that was carried out under this key is not carried out again. */
  readonly idempotencyKey?: unknown;
}

export interface TransactionOrder extends Order {
  readonly action: TransactionAction;
  readonly txId: string;
}

/** In its body: `chainId` if several chains are configured, `nonce` with `realign`. */
export interface LaneOrder extends Order {
  readonly action: LaneAction;
  readonly signer: string;
}

/** The body in `request` has the count `times` that the operator saw. */
export interface NoticeOrder extends Order {
  readonly noticeId: string;
}

export interface KillOrder extends Omit<Order, "idempotencyKey"> {
  /** Null: every signer. */
  readonly signer: string | null;
}

export interface KillAnswer {
  /** Every order in force is written down: it outlives this process. False: that is tried until it is. */
  readonly durable: boolean;
  /** Kills in force, as this node knows them. */
  readonly kills: readonly Kill[];
  /** The other nodes, and whether they have confirmed it; the others are notified again, or read it. */
  readonly nodes: readonly { readonly nodeId: string; readonly url: string; readonly told: boolean }[];
}

/** A create as received, not yet validated: only the create stage knows what is well-formed. */
export type CreateRequest = { readonly [Name in (typeof CREATE_FIELDS)[number]]?: unknown };

export interface NamedCreate {
  readonly txId: string;
  readonly request: CreateRequest;
}

/** A caller's signed transaction, not validated yet. */
export interface SignedRequest {
  readonly chainId?: unknown;
  readonly rawTransaction?: unknown;
}

export interface Waiting {
  readonly withinMs: number;
  readonly signal?: AbortSignal;
}

/** A request to reserve a nonce, not validated yet. */
export interface ReserveRequest {
  readonly chainId?: unknown;
  readonly signer?: unknown;
  /** Seconds, or a duration such as "45s". */
  readonly ttl?: unknown;
  readonly requestId?: unknown;
}

export interface Reserved {
  /** "existing": the request id had reserved before; its state may be any. */
  readonly outcome: "created" | "existing";
  readonly reservation: Reservation;
}

/** The same answer, whether it was accepted here or by the lane's owner. */
export type Created = ForwardedAnswer;

/** "logs" are read from the chain. */
export type Include = "history" | "confirmations" | "logs";

export interface TransactionView extends TransactionRecord {
  /** The mined attempt's hash, else the newest's. */
  readonly txHash: Hash | null;
  readonly nextResubmitAt: Date | null;
  /** While it waits for approval: its maximum cost, value included; absent if this node does not serve its chain. */
  readonly worstCost?: bigint;
  readonly history?: readonly HistoryRecord[];
  readonly confirmations?: readonly { readonly number: number; readonly hash: Hash }[];
  readonly onChain?: ChainLook;
}

export interface ChainLook extends Pick<ShownOutcome, "logs" | "more" | "revert"> {
  /** "unmined": there is no receipt to ask about. "differs": the receipt is in another block. "silent": no answer. */
  readonly kind: "shown" | "unmined" | "unknown" | "differs" | "silent";
  readonly askedAt: Date;
  readonly blockHash: Hash | null;
}

/** A request by its lane's signer, or by the pool that was asked. */
export interface RequestQuery {
  readonly signer?: string;
  readonly pool?: string;
  readonly requestId: string;
  readonly chainId?: number;
}

export interface ListQuery extends Partial<Omit<ListFilter, "signer" | "txHash" | "after">> {
  readonly signer?: string;
  readonly txHash?: string;
  /** The opaque cursor of the page before. */
  readonly after?: string;
}

export interface CompletionsQuery {
  readonly after: number;
  readonly epoch?: number;
  readonly limit?: number;
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

export interface CompletionsPage {
  readonly epoch: number;
  readonly items: readonly CompletionRecord[];
  readonly next: number;
  /** The key sees only some signers or chains: gaps in the numbers are others'. */
  readonly filtered?: true;
}

export interface SignersQuery extends Pick<LaneFilter, "chainId" | "owner"> {
  /** Only lanes that a person should look at. */
  readonly needs?: "attention";
  /** `next` of the page before. */
  readonly after?: string;
  readonly limit?: number;
}

/** Held while the answer still is of `revision`, for `waitMs` at most. */
export interface HeldQuery {
  readonly revision?: string;
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}

export interface AttentionQuery extends HeldQuery {
  readonly chainId?: number;
  readonly limit?: number;
}

export interface AttentionView {
  readonly revision: string;
  readonly asOf: Date;
  readonly items: readonly Trouble[];
  readonly more: number;
  /** Recent momentary alerts that are over, newest first. */
  readonly past: readonly Trouble[];
}

export interface Found {
  readonly kind: "transaction" | "signer" | "reservation" | "node";
  readonly label: string;
  readonly txId?: string;
  readonly chainId?: number;
  readonly signer?: Address;
  readonly nonce?: number;
  readonly reservationId?: string;
  readonly nodeId?: string;
}

export interface NonceRulerQuery {
  readonly chainId?: number;
  readonly from?: number;
  readonly to?: number;
}
