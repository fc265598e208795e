import type { Kill } from "../domain/cluster/kills.ts";
import type { Address, Hash, Hex, Lane } from "../domain/lane.ts";
import type { WindowLimit } from "../domain/pace/lane-pace.ts";
import type { PolicyRecord } from "../domain/policy/in-force.ts";
import type { Forbidden } from "../domain/policy/policy.ts";
import type { Amounts } from "../domain/policy/use.ts";
import type { Reservation } from "../domain/transaction/reservations.ts";
import type { CREATE_FIELDS } from "../domain/transaction/transaction.ts";
import type { ShownOutcome } from "../ports/chain.ts";
import type { TransactionObject } from "../ports/codec.ts";
import type { KeyTerms } from "../ports/key-store.ts";
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
export type CreateRequest = { readonly [Name in (typeof CREATE_FIELDS)[number]]?: unknown };

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
