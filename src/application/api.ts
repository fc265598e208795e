import type { FencepostError } from "../domain/errors.ts";
import type { Kill } from "../domain/kills.ts";
import type { Address, Hash, Hex, Lane } from "../domain/lane.ts";
import type { Notice } from "../domain/notices.ts";
import type { WindowLimit } from "../domain/pace/window-limits.ts";
import type { PolicyRecord } from "../domain/policy/in-force.ts";
import type { Forbidden } from "../domain/policy/policy.ts";
import type { Amounts } from "../domain/policy/use.ts";
import type { CreateLimits, Limits } from "../domain/principal.ts";
import type { Reservation } from "../domain/reservations.ts";
import type { Explanation } from "../domain/troubles/situation.ts";
import type { PassedAnswer } from "../ports/chain.ts";
import type { TransactionObject } from "../ports/codec.ts";
import type { KeyTerms } from "../ports/key-store.ts";
import type { InstanceRecord, LeaseRecord } from "../ports/lease-store.ts";
import type { ForwardedAnswer } from "../ports/peers.ts";
import type {
  CompletionRecord,
  HistoryRecord,
  LaneDecisionRecord,
  LaneFilter,
  LaneRecord,
  ListFilter,
  TransactionRecord,
} from "../ports/query-store.ts";
import type { ShownOutcome } from "../ports/shown-outcome.ts";
import type { SightApi } from "./sight-api.ts";

/**
 * What Fencepost offers: the HTTP adapter, the library and the tests all use this one interface.
 * Every method that fails for a reason a caller can act on throws a FencepostError.
 */
export interface FencepostApi extends SightApi {
  /**
   * Validates, prepares, allocates; resolves once the transaction is durable. It belongs to `owner`, the name of an API
   * key, and FORBIDDEN says that it is outside that key's limits.
   */
  create(request: CreateRequest, owner?: string | null, limits?: CreateLimits): Promise<Created>;
  /** In order; partial success is normal. Never throws for an item. */
  createBatch(
    requests: readonly CreateRequest[],
    owner?: string | null,
    limits?: CreateLimits,
  ): Promise<readonly (Created | FencepostError)[]>;
  /** For `createNamed`. */
  newIds(count: number): Promise<readonly string[]>;
  /**
   * As `createBatch`, of creates whose ids are known before they are made, so that one whose answer does not come in time can
   * be named.
   */
  createNamed(
    creates: readonly NamedCreate[],
    owner?: string | null,
    limits?: CreateLimits,
  ): Promise<readonly (Created | FencepostError)[]>;
  /** What a caller signed with a key that is managed here, at the lane's next nonce or at one that it reserved; CONFLICT elsewhere. */
  submitSigned(request: SignedRequest, owner?: string | null, limits?: Limits): Promise<SubmittedSigned>;
  /** The hash of its first attempt, once that is stored. Null: not in time, or never. */
  firstHash(txId: string, within: Waiting): Promise<Hash | null>;
  /** The bytes of an attempt of ours, an old one too, as JSON-RPC shows a transaction that waits; null: none that we know. */
  signedAs(chainId: number, txHash: Hash): Promise<SignedView | null>;
  /** What one of the chain's endpoints answers. UNKNOWN_CHAIN where this node has none. */
  askChain(chainId: number, method: string, params: unknown): Promise<PassedAnswer>;
  /** What a stranger signed, handed to the chain's endpoints. UNAVAILABLE, with nothing sent, while everything is stopped. */
  passSigned(chainId: number, rawTransaction: Hex): Promise<PassedAnswer>;
  transaction(txId: string, include?: readonly Include[]): Promise<TransactionView>;
  transactionByRequest(query: RequestQuery, include?: readonly Include[]): Promise<TransactionView>;
  transactions(query: ListQuery): Promise<{ readonly items: readonly TransactionView[]; readonly next: string | null }>;
  /** Why it is not final yet, and what would help. */
  /** `blockerByNonce`: of the transaction in its way, no more than the nonce. */
  explain(txId: string, options?: { readonly blockerByNonce?: boolean }): Promise<Explanation>;
  completions(query: CompletionsQuery): Promise<CompletionsPage>;
  /** One page, by signer and chain. Of the chain it shows what this node's loops were last told. */
  signers(query?: SignersQuery): Promise<SignersPage>;
  /** One item per chain the signer has a lane on; `fresh` asks the chain. UNKNOWN_SIGNER where no node holds its key. */
  signer(signer: string, options?: { readonly fresh?: boolean }): Promise<readonly SignerView[]>;
  /** Keeps a nonce for a caller that signs itself; a repeat of the request id gets its own again. */
  reserveNonce(request: ReserveRequest, owner?: string | null, limits?: Limits): Promise<Reserved>;
  reservation(reservationId: string): Promise<Reservation>;
  /** `{ rawTransaction }`, signed for that very nonce: from here on a tracked transaction. CONFLICT where it is too late. */
  submitReserved(reservationId: string, request: unknown): Promise<Created>;
  /** `{ txHash }` of what the caller sent itself: followed, and never sent from here. */
  markUsed(reservationId: string, request: unknown): Promise<Created>;
  /** The caller's word that nothing was signed: the nonce is free for the next transaction. */
  releaseNonce(reservationId: string): Promise<Reservation>;
  /** What policies would say to this create now, and what it would be charged. Nothing is done. */
  checkPolicy(request: CreateRequest, key?: string | null, limits?: Limits): Promise<PolicyVerdict>;
  /** The document in force on every node. */
  policies(): Promise<PoliciesView>;
  /**
   * `{ policies, reason, expectedVersion? }`: another document for every node, obeyed by whatever gets a nonce or a further
   * payload once this is answered. CONFLICT where another version than the expected one is in force.
   */
  applyPolicies(request: unknown, actor: string): Promise<PoliciesView>;
  /** Of everybody, or of one key or signer. */
  policyUsage(query?: { readonly key?: string; readonly signer?: string }): Promise<PolicyUsageView>;
  /** Live instances. */
  nodes(): Promise<readonly InstanceRecord[]>;
  /** Every lane that was ever acquired, with its owner where it has one. */
  leases(): Promise<readonly LeaseRecord[]>;
  /** Of one chain, or of any. UNKNOWN_CHAIN where the one asked for is not configured. */
  readiness(chainId?: number): Promise<Readiness>;
  /** Carries out an operator's decision; answers with the transaction as it stands then. CONFLICT says what really happened. */
  act(order: TransactionOrder): Promise<TransactionView>;
  /** The same for a lane as a whole. */
  actOnLane(order: LaneOrder, limits?: Limits): Promise<readonly SignerView[]>;
  /** Nothing of a signer, or of any, is sent from any node until this is ended. Stops at once, also where the database is away. */
  kill(order: KillOrder): Promise<KillAnswer>;
  /** Answers once the end is durable. */
  endKill(order: KillOrder): Promise<KillAnswer>;
  /** Says who looked into a notice, and why it needs nobody any more. CONFLICT where somebody else did, or it happened again since. */
  acknowledge(order: NoticeOrder, limits?: Limits): Promise<Notice>;
  /** API keys of the database; those of the configuration are not among them. */
  keys(): Promise<readonly KeyView[]>;
  /** `name`, `scopes`, `signers`, `chains`: a new key, or one more secret of one on the same terms. CONFLICT where it has two. */
  addKey(request: unknown, actor: string): Promise<NewKey>;
  /** One secret of it, or all of it. */
  revokeKey(name: string, secretId: string | null, actor: string): Promise<void>;
}

export interface NoticeOrder {
  readonly noticeId: string;
  /** The unparsed body: `reason`, and the count `times` that the operator saw. */
  readonly request: unknown;
  readonly actor: string;
  readonly idempotencyKey?: unknown;
}

export interface KeyView extends KeyTerms {
  readonly createdAt: Date;
  readonly secrets: readonly { readonly secretId: string; readonly createdAt: Date }[];
}

export interface NewKey extends KeyTerms {
  /** Told this once. */
  readonly secret: string;
  readonly secretId: string;
}

/** Asked of any node. */
export type PolicyApi = "checkPolicy" | "policies" | "applyPolicies" | "policyUsage";

export interface PoliciesView extends Omit<PolicyRecord, "stamp" | "document"> {
  /** Null: nothing is limited. */
  readonly hash: Hex | null;
  readonly policies: Readonly<Record<string, unknown>> | null;
}

export interface PolicyVerdict extends Amounts, Partial<Forbidden> {
  readonly allowed: boolean;
  /** It would wait for approval; `rule` says by which one. */
  readonly awaitsApproval?: boolean;
}

/** What is used in the present hour and day, beside the limits; null: not limited. */
export interface UsedView {
  /** When the hour began. */
  readonly since: Date;
  readonly hour: UsedWindow;
  readonly day: UsedWindow;
}

interface UsedWindow extends Amounts {
  readonly maxValue: bigint | null;
  readonly maxCost: bigint | null;
}

export interface PolicyUsageView {
  readonly at: Date;
  readonly signers: readonly (UsedView & { readonly lane: Lane })[];
  readonly keys: readonly (UsedView & { readonly chainId: number; readonly key: string })[];
}

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

export interface TransactionOrder {
  readonly action: TransactionAction;
  readonly txId: string;
  /** As it arrived, not yet validated: `reason`, and what goes with the action. */
  readonly request: unknown;
  /** Who gives it, for the audit: `operator:<name>`. */
  readonly actor: string;
  /** Of the caller's own: what was carried out under it is not carried out again. */
  readonly idempotencyKey?: unknown;
}

export interface LaneOrder {
  readonly action: LaneAction;
  readonly signer: string;
  /** As it arrived: `reason`, `chainId` where several chains are configured, `nonce` with `realign`. */
  readonly request: unknown;
  readonly actor: string;
  readonly idempotencyKey?: unknown;
}

export interface KillOrder extends Omit<LaneOrder, "action" | "signer" | "idempotencyKey"> {
  /** Null: everything. */
  readonly signer: string | null;
}

export interface KillAnswer {
  /** Every order in force is written down: it outlives this process. False: that is tried until it is. */
  readonly durable: boolean;
  /** In force, as this node knows it. */
  readonly kills: readonly Kill[];
  /** The other nodes, and whether they have said that they hold to it; those that have not are told again, or read it. */
  readonly nodes: readonly { readonly nodeId: string; readonly url: string; readonly told: boolean }[];
}

/** As it arrives, not yet validated: the create stage is the one place that knows what is well-formed. */
export interface CreateRequest {
  readonly chainId?: unknown;
  readonly signer?: unknown;
  readonly requestId?: unknown;
  readonly payload?: unknown;
  readonly allowNoCode?: unknown;
  readonly validUntil?: unknown;
  readonly metadata?: unknown;
  /** Exactly this one, or refused: CONFLICT with `nextNonce`. */
  readonly nonce?: unknown;
}

export interface NamedCreate {
  readonly txId: string;
  readonly request: CreateRequest;
}

/** As it arrives, not yet validated. */
export interface SignedRequest {
  readonly chainId?: unknown;
  readonly rawTransaction?: unknown;
}

export interface SubmittedSigned extends Created {
  readonly txHash: Hash;
}

export interface SignedView {
  readonly lane: Lane;
  readonly transaction: TransactionObject;
}

export interface Waiting {
  readonly withinMs: number;
  readonly signal?: AbortSignal;
}

/** What the methods of Ethereum's JSON-RPC need beside the others. */
export type JsonRpcApi = "newIds" | "createNamed" | "firstHash" | "signedAs" | "askChain" | "passSigned";

/** What only the lane's owner can do. */
export type OperationName =
  | "act"
  | "actOnLane"
  | "reserveNonce"
  | "reservation"
  | "submitReserved"
  | "markUsed"
  | "releaseNonce"
  | "submitSigned";

export type KeyOperation = "keys" | "addKey" | "revokeKey";

/** As it arrives, not yet validated. */
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

/** The same wherever it was accepted: here, or by the lane's owner. */
export type Created = ForwardedAnswer;

/** With "logs" the chain is asked. */
export type Include = "history" | "confirmations" | "logs";

export interface TransactionView extends TransactionRecord {
  /** The mined attempt's hash, else the newest's. */
  readonly txHash: Hash | null;
  readonly nextResubmitAt: Date | null;
  /** While it waits for approval: the most that it can cost, value included; absent where this node does not serve its chain. */
  readonly worstCost?: bigint;
  readonly history?: readonly HistoryRecord[];
  readonly confirmations?: readonly { readonly number: number; readonly hash: Hash }[];
  readonly onChain?: ChainLook;
}

/** What became of a question to the chain. "unmined": there is no receipt to ask about. "differs": it stands in another block. */
export type LookKind = "shown" | "unmined" | "unknown" | "differs" | "silent";

export interface ChainLook extends Pick<ShownOutcome, "logs" | "more" | "revert"> {
  readonly kind: LookKind;
  readonly askedAt: Date;
  readonly blockHash: Hash | null;
}

/** By the lane's signer, or by the pool that was asked. */
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

export interface SignersPage {
  readonly items: readonly SignerView[];
  readonly next: string | null;
}

export interface SignerView extends LaneRecord {
  readonly address: Address;
  /** Null where the chain does not answer right now. */
  readonly chainCounts: { readonly latest: number; readonly pending: number | null } | null;
  readonly balance: bigint | null;
  /** Null: it signs, as far as this node knows. */
  readonly signerAway: { readonly since: Date; readonly reason: string } | null;
  /** Null: another node acts for it and knows. */
  readonly window: LaneWindow | null;
  /** What people decided about the lane, newest first; where one signer is asked for. */
  readonly decisions?: readonly LaneDecisionRecord[];
}

/** How many may be on their way at once. */
export interface LaneWindow {
  /** By the settings. */
  readonly configured: number;
  /** Now: fewer where the chain's node takes no nonce ahead of the next one. */
  readonly open: number;
  /** Signed, and not mined. */
  readonly inFlight: number;
  /** What keeps the next from being signed; null: nothing does, or nothing waits. */
  readonly limitedBy: WindowLimit | null;
}

export interface Readiness {
  readonly ready: boolean;
  readonly database: boolean;
  readonly chains: readonly {
    readonly chainId: number;
    readonly reachable: boolean;
    readonly head: number | null;
    /** Lanes of this node whose signer does not sign now. */
    readonly signersAway: number;
  }[];
  readonly draining: boolean;
}
