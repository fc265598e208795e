import type { Kill } from "../domain/cluster/kills.ts";
import type { TransactionCost } from "../domain/figures/costs.ts";
import type { Address, Hash } from "../domain/lane.ts";
import type { AskedTypedData } from "../domain/messages/parse-message.ts";
import type { SignatureRecord } from "../domain/messages/record.ts";
import type { Reservation } from "../domain/transaction/reservations.ts";
import type { CREATE_FIELDS } from "../domain/transaction/transaction.ts";
import type { Trouble } from "../domain/troubles/rows.ts";
import type { ShownOutcome } from "../ports/chain.ts";
import type { Words } from "../ports/codec.ts";
import type { ForwardedAnswer } from "../ports/peers.ts";
import type {
  CompletionRecord,
  HistoryRecord,
  LaneFilter,
  ListFilter,
  SignatureFilter,
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

/** An operator's action as received, not validated yet. */
interface ActionRequest {
  /** Unparsed request body of the action: `reason`, and the fields specific to this action. */
  readonly request: unknown;
  /** Who requested the action, as recorded in the audit log: `operator:<name>`. */
  readonly actor: string;
  /** Idempotency key chosen by the caller: an action that was carried out under this key is not carried out again. */
  readonly idempotencyKey?: unknown;
}

export interface TransactionActionRequest extends ActionRequest {
  readonly action: TransactionAction;
  readonly txId: string;
}

/**
 * An operator's action on a lane. The request body has `chainId` if several chains are configured, and `nonce` for
 * `realign`.
 */
export interface LaneActionRequest extends ActionRequest {
  readonly action: LaneAction;
  readonly signer: string;
}

/** Acknowledgement of a notice. The body in `request` contains the count `times` that the operator saw. */
export interface NoticeActionRequest extends ActionRequest {
  readonly noticeId: string;
}

export interface KillActionRequest extends Omit<ActionRequest, "idempotencyKey"> {
  /** Signer that the kill stops; null for every signer. */
  readonly signer: string | null;
}

/** A request about a subscriber. */
export interface WebhookActionRequest extends Omit<ActionRequest, "idempotencyKey"> {
  readonly subscriberId: string;
}

export interface KillAnswer {
  /**
   * True if every kill in force is stored in the database and so outlives this process. False: storing it is still
   * being retried.
   */
  readonly durable: boolean;
  /** Kills in force, as far as this node knows. */
  readonly kills: readonly Kill[];
  /**
   * The other nodes, and whether each has confirmed the kill. A node that has not is notified again, or reads the kill
   * from the database.
   */
  readonly nodes: readonly { readonly nodeId: string; readonly url: string; readonly told: boolean }[];
}

/** A create request as received; the create stage validates it. */
export type CreateRequest = { readonly [Name in (typeof CREATE_FIELDS)[number]]?: unknown };

/** A dry run, as received: of a create, or of a message to sign. */
export type PolicyCheckRequest = CreateRequest & Pick<SignMessageRequest, "message" | "typedData">;

export interface NamedCreate {
  readonly txId: string;
  readonly request: CreateRequest;
}

/** A transaction that its caller signed, as received and not validated yet. */
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
  /** How long the reservation lasts: seconds, or a duration such as "45s". */
  readonly ttl?: unknown;
  readonly requestId?: unknown;
}

/** A request to have a message signed, not validated yet. */
export interface SignMessageRequest {
  readonly chainId?: unknown;
  readonly signer?: unknown;
  readonly requestId?: unknown;
  readonly message?: unknown;
  readonly typedData?: unknown;
}

/** A decision about a requested signature, as received. */
export interface DecideSignatureRequest extends Omit<ActionRequest, "idempotencyKey"> {
  readonly action: "approve" | "reject";
  readonly signatureId: string;
}

export interface SignaturesQuery extends Pick<SignatureFilter, "chainId" | "state" | "domain"> {
  readonly signer?: string;
  /** Name of the API key that asked. */
  readonly key?: string;
  readonly after?: string;
  readonly limit?: number;
}

/** A requested signature for audit, without the signature itself. */
export interface SignatureView extends Omit<SignatureRecord, "signature" | "message"> {
  readonly kind: "personal" | "typedData";
  readonly domain: string | null;
  /** Text of a personal message; null for typed data. */
  readonly message: string | null;
  readonly typedData: AskedTypedData | null;
}

export interface Reserved {
  /** "existing": a reservation with this request id already exists; it may be in any state by now. */
  readonly outcome: "created" | "existing";
  readonly reservation: Reservation;
}

/** Result of a create; its form is the same whether this node or the lane's owner accepted it. */
export type Created = ForwardedAnswer;

/** Optional parts of a transaction's response. "logs" are read from the chain. */
export type Include = "history" | "confirmations" | "logs";

export interface TransactionView extends TransactionRecord {
  /** Hash of the mined attempt; if none is mined, of the newest attempt. */
  readonly txHash: Hash | null;
  readonly nextResubmitAt: Date | null;
  /**
   * Maximum cost of a transaction that waits for approval, value included. Absent if this node does not serve its
   * chain.
   */
  readonly worstCost?: bigint;
  readonly history?: readonly HistoryRecord[];
  readonly confirmations?: readonly { readonly number: number; readonly hash: Hash }[];
  readonly onChain?: ChainLook;
  /** The payload in words; absent if no ABI has its function. */
  readonly decoded?: DecodedCall;
}

/** A call in words. `contract`: name of the ABI; null for a token standard. */
export interface DecodedCall extends Words {
  readonly contract: string | null;
}

export interface ChainLook extends Pick<ShownOutcome, "logs" | "more" | "revert"> {
  /**
   * "unmined": no receipt is stored. "unknown": the endpoint has no receipt of the transaction. "differs": its receipt
   * is in another block than the stored one. "silent": no endpoint answered.
   */
  readonly kind: "shown" | "unmined" | "unknown" | "differs" | "silent";
  readonly askedAt: Date;
  readonly blockHash: Hash | null;
}

/**
 * Finds a transaction by its request id. The query also names the signer of the lane, or the pool that the request was
 * made to.
 */
export interface RequestQuery {
  readonly signer?: string;
  readonly pool?: string;
  readonly requestId: string;
  readonly chainId?: number;
}

export interface ListQuery
  extends Partial<Omit<ListFilter, "signer" | "within" | "txHash" | "after" | "createdAfter" | "createdBefore">> {
  /** Instants: ISO 8601 with an offset, or a Date. */
  readonly createdAfter?: string | Date;
  readonly createdBefore?: string | Date;
  readonly signer?: string;
  readonly txHash?: string;
  /** Opaque cursor from the previous page. */
  readonly after?: string;
}

export interface CompletionsQuery {
  readonly after: number;
  readonly epoch?: number;
  readonly limit?: number;
  /** "cost": adds what each transaction has cost. */
  readonly include?: "cost";
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  /** True for a stream: also its first read may be shared with other readers at the same position. */
  readonly follows?: boolean;
}

export type CompletionCost = Pick<TransactionCost, "createdAt" | "owner" | "receiver" | "fees" | "value">;

export interface CompletionsPage {
  readonly epoch: number;
  /** `cost`: set only if it was asked for; null if retention has removed the transaction. */
  readonly items: readonly (CompletionRecord & { readonly cost?: CompletionCost | null })[];
  readonly next: number;
  /**
   * Set if the API key may see only some signers or chains: gaps in the sequence numbers are completions that it may
   * not see.
   */
  readonly filtered?: true;
}

export interface SignersQuery extends Pick<LaneFilter, "chainId" | "owner"> {
  /** "attention": return only lanes that an operator should look at. */
  readonly needs?: "attention";
  /** Cursor: `next` of the previous page. */
  readonly after?: string;
  readonly limit?: number;
}

/** A long poll: the response is delayed until the view differs from `revision`, for at most `waitMs`. */
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
  /** Recent alerts about single events, which have no lasting state; newest first. */
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
