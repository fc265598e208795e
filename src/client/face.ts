import type { Abis, PutAbis } from "../contract/calls/abis.ts";
import type { Caller, ClusterNode, KillOrder, KillSwitchState, LaneLease } from "../contract/calls/cluster.ts";
import type { DeclaredCall } from "../contract/calls/index.ts";
import type { AddKey, Keys, NewKey, RevokedKey } from "../contract/calls/keys.ts";
import type {
  ApplyPolicies,
  PoliciesInForce,
  PolicyCheck,
  PolicyUsage,
  PolicyVerdict,
} from "../contract/calls/policies.ts";
import type {
  AddWebhook,
  ChangeWebhook,
  NewWebhook,
  RemovedWebhook,
  ReplayWebhook,
  RotateWebhook,
  TestedWebhook,
  Webhook,
  WebhookReason,
} from "../contract/calls/webhooks.ts";
import type * as actions from "../contract/schemas/actions.ts";
import type { Attention, AttentionQuery } from "../contract/schemas/attention.ts";
import type { ClusterHistory, ClusterHistoryQuery } from "../contract/schemas/cluster-history.ts";
import type { CompletionsPage, CompletionsQuery } from "../contract/schemas/completions.ts";
import type { Costs, CostsQuery, History, HistoryQuery } from "../contract/schemas/figures.ts";
import type { NonceRuler, NonceRulerQuery } from "../contract/schemas/nonce-ruler.ts";
import type { AcknowledgeOrder, Notice, NoticesQuery } from "../contract/schemas/notice.ts";
import type { Overview, OverviewQuery } from "../contract/schemas/overview.ts";
import type { SearchQuery, SearchResults } from "../contract/schemas/search.ts";
import type { SignerLane, SignerNames, SignersPage, SignersQuery } from "../contract/schemas/signers.ts";
import type {
  Explanation,
  Transaction,
  TransactionListQuery,
  TransactionPage,
} from "../contract/schemas/transaction-schema.ts";
import type { FunctionOf, SomeAbi, TransactionIntent, TypedReplaceOrder } from "../contract/schemas/typed-payload.ts";
import type { CallOptions, OrderOptions } from "./deadline.ts";
import type { FencepostError } from "./error-classes.ts";
import type { FollowedCompletion, FollowQuery, WaitOptions } from "./follow.ts";
import type { Address } from "./hex.ts";
import type { OutcomesQuery } from "./outcomes.ts";
import type { SentTransaction } from "./sent-transaction.ts";
import { SIGNATURE_PATHS, type SignatureCalls } from "./signatures.ts";
import { NONCE_PATHS, type NonceCalls } from "./with-nonce.ts";

/** Optional parts of a transaction. For "logs" the node reads the chain. */
export type Include = "history" | "confirmations" | "logs";
/** Options of a read. */
export type ReadOptions = CallOptions & {
  /** Optional parts to include. */
  readonly include?: readonly Include[];
};

/** Identifies a transaction by its request id, with the signer or the pool that the request named. */
export type RequestName = (
  | {
      /** Signer that the request named. */
      readonly signer: Address;
    }
  | {
      /** Pool that the request named. */
      readonly pool: string;
    }
) & {
  /** The caller's own id of the request. */
  readonly requestId: string;
  /** Chain id; required if several chains are configured. */
  readonly chainId?: number;
};

/** Filter of notices. `open`: only notices that are neither acknowledged nor over. */
export type NoticesWish = NoticesQuery;
/** Subject of a kill. */
export type KillWish = KillOrder & {
  /** The only signer to kill; without it, everything. */
  readonly signer?: Address;
};

/** Options of a read of one signer. */
export type FreshOptions = CallOptions & {
  /** True: the node asks the chain now, instead of using its latest values. */
  readonly fresh?: boolean;
};

/** Options of the revocation of an API key. */
export type RevokeOptions = CallOptions & {
  /** The only secret to revoke; without it, the whole key. */
  readonly secretId?: string;
};

/** Filter of the use of limits. */
export interface PolicyUsageQuery {
  /** Name of an API key. */
  readonly key?: string;
  /** Address of a signer. */
  readonly signer?: Address;
}

/**
 * Fencepost's calls. Types, results and errors are the same whether the node runs in this process (`createFencepost`)
 * or elsewhere (`createClient`). Every call accepts `signal` and `timeoutMs`.
 */
export interface FencepostFace<SendOptions extends CallOptions = CallOptions> extends NonceCalls, SignatureCalls {
  /**
   * Sends a transaction; resolves once the intent is durable. Without a requestId it gets a UUID as one. With an ABI
   * that the compiler knows (`as const`), `function` and `args` are checked against it.
   */
  send<const A extends SomeAbi = SomeAbi, F extends FunctionOf<A> = FunctionOf<A>>(
    intent: TransactionIntent<A, F>,
    options?: SendOptions,
  ): Promise<SentTransaction>;
  /**
   * Sends any number of transactions. Returns one result for each, in order: an invalid one is an error in its place,
   * and does not affect the others.
   */
  sendMany(
    intents: readonly TransactionIntent[],
    options?: SendOptions,
  ): Promise<readonly (SentTransaction | FencepostError)[]>;
  /** Creates a handle for a transaction that was sent before. */
  handle(txId: string, options?: CallOptions): Promise<SentTransaction>;
  /** Reads a transaction by its id. */
  get(txId: string, options?: ReadOptions): Promise<Transaction>;
  /** Reads a transaction by the caller's own request id. */
  getByRequest(request: RequestName, options?: ReadOptions): Promise<Transaction>;
  /** Explains in plain words why a transaction is not final yet, and what would help. */
  explain(txId: string, options?: CallOptions): Promise<Explanation>;
  /** One page of transactions, newest first; pass `next` as `after` until it is null. */
  list(query?: TransactionListQuery, options?: CallOptions): Promise<TransactionPage>;
  /** One page of the completion feed. */
  completionsPage(query?: CompletionsQuery, options?: CallOptions): Promise<CompletionsPage>;
  /**
   * Follows the completion feed from `after` on, endlessly, one item at a time. With a `store` the position is saved
   * there, and the iteration survives a lost connection and a new epoch. Without a store, save `seq` and `feedEpoch` of
   * the items that you have processed.
   */
  completions(query?: FollowQuery, options?: CallOptions): AsyncGenerator<FollowedCompletion, void, undefined>;
  /**
   * Receives every outcome from `after` on, endlessly, as it happens. It continues after the last one by itself when the
   * connection or the node is lost, and ends at an error that a repeat cannot fix. Without a `store`, a changed epoch is
   * such an error: compare what you booked, then continue at its `epoch` and `resumeAfter`.
   *
   * @example
   * for await (const { requestId, state, settled } of fencepost.outcomes({ after })) await book(requestId, state, settled);
   */
  outcomes(query?: OutcomesQuery, options?: CallOptions): AsyncGenerator<FollowedCompletion, void, undefined>;
  /**
   * Resolves when the transaction is CONFIRMED or FAILED_FINAL. A STUCK one may still progress, so the wait continues.
   */
  waitFor(txId: string, options?: WaitOptions): Promise<Transaction>;
  /** Lists all lanes, read page by page. */
  signers(options?: CallOptions): Promise<readonly SignerLane[]>;
  /** One page of lanes; pass `next` as `after` until it is null. */
  signersPage(query?: SignersQuery, options?: CallOptions): Promise<SignersPage>;
  /**
   * The lanes of one signer, one item per chain. With `fresh` the node reads the chain instead of using its latest
   * values.
   */
  signer(address: Address, options?: FreshOptions): Promise<readonly SignerLane[]>;
  /**
   * Sends the stored bytes again, now. Like `reprice`, `cancel`, `replace` and `resolve` it returns the transaction; a
   * CONFLICT names the mined transaction.
   */
  resubmit(txId: string, request: actions.ResubmitOrder, options?: OrderOptions): Promise<Transaction>;
  /** Signs the same payload at a higher price: the market's, or the given fees. */
  reprice(txId: string, request: actions.PricedOrder, options?: OrderOptions): Promise<Transaction>;
  /** Uses up the nonce with an empty transfer. The original may still be mined first: then it is CONFIRMED. */
  cancel(txId: string, request: actions.PricedOrder, options?: OrderOptions): Promise<Transaction>;
  /** Signs another payload at the transaction's nonce. */
  replace<const A extends SomeAbi = SomeAbi, F extends FunctionOf<A> = FunctionOf<A>>(
    txId: string,
    request: TypedReplaceOrder<A, F>,
    options?: OrderOptions,
  ): Promise<Transaction>;
  /** Resolves a stuck transaction: calls the hook now, or applies the given action. */
  resolve(txId: string, request: actions.ResolveOrder, options?: OrderOptions): Promise<Transaction>;
  /**
   * Approves a transaction that waits for approval, so that it gets its nonce. Needs an API key with `approve` other
   * than the one that created it.
   */
  approve(txId: string, request: actions.ApprovalOrder, options?: OrderOptions): Promise<Transaction>;
  /**
   * Rejects a transaction that waits for approval: FAILED_FINAL/REJECTED, without a nonce. Needs an API key with
   * `approve` other than the one that created it.
   */
  reject(txId: string, request: actions.ApprovalOrder, options?: OrderOptions): Promise<Transaction>;
  /**
   * Puts one transaction on hold, not its lane: none of its attempts is sent until it is resumed. Bytes that a node
   * already has may still be mined.
   */
  suspendTransaction(txId: string, request: actions.HoldOrder, options?: OrderOptions): Promise<Transaction>;
  /** Ends the hold of one transaction. */
  resumeTransaction(txId: string, request: actions.HoldOrder, options?: OrderOptions): Promise<Transaction>;
  /**
   * Dry run: what the policies would decide about this transaction or message now, and how much it would count. Changes
   * nothing.
   */
  checkPolicy(check: PolicyCheck, options?: CallOptions): Promise<PolicyVerdict>;
  /** The policy document in force on every node, and who applied it. */
  policies(options?: CallOptions): Promise<PoliciesInForce>;
  /**
   * Replaces the policy document on every node; it is in force when this call resolves. Needs `admin`. Applied once,
   * however often the call is repeated.
   */
  applyPolicies(request: ApplyPolicies, options?: CallOptions): Promise<PoliciesInForce>;
  /** Use of the policy limits in this hour and day: of all keys and signers, or of one. */
  policyUsage(query?: PolicyUsageQuery, options?: CallOptions): Promise<PolicyUsage>;
  /** Suspends a lane: creates are accepted and wait; nothing is sent. */
  suspend(signer: Address, request: actions.LaneOrder, options?: OrderOptions): Promise<readonly SignerLane[]>;
  /** Resumes a suspended lane. */
  resume(signer: Address, request: actions.LaneOrder, options?: OrderOptions): Promise<readonly SignerLane[]>;
  /**
   * Lowers a lane's next nonce that an endpoint's false answers pushed too high; the result shows how far it was
   * lowered.
   */
  realign(signer: Address, request: actions.RealignOrder, options?: OrderOptions): Promise<readonly SignerLane[]>;
  /**
   * Kills one signer, or all signers, on all nodes: nothing is sent until the kill is ended. Check `durable` and
   * `nodes` in the result.
   */
  kill(request?: KillWish, options?: CallOptions): Promise<KillSwitchState>;
  /** Ends a kill; resolves once the end is durable. */
  endKill(request?: KillWish, options?: CallOptions): Promise<KillSwitchState>;
  /** Lists the API keys of the database. Needs a key with `admin`. */
  keys(options?: CallOptions): Promise<readonly Keys["items"][number][]>;
  /**
   * Adds an API key. If a key with this name and the same settings exists, adds a second secret to it. The secret is
   * returned only once.
   */
  addKey(key: AddKey, options?: CallOptions): Promise<NewKey>;
  /** Revokes an API key, or one of its secrets. */
  revokeKey(name: string, options?: RevokeOptions): Promise<RevokedKey>;
  /** Lists the webhooks that deliver outcomes, each with its position, its backlog and the receiver's last answer. */
  webhooks(options?: CallOptions): Promise<readonly Webhook[]>;
  /** Reads one webhook. */
  webhook(subscriberId: string, options?: CallOptions): Promise<Webhook>;
  /** Has outcomes posted to a receiver. The secret that verifies them is returned only once. Needs `admin`. */
  addWebhook(webhook: AddWebhook, options?: CallOptions): Promise<NewWebhook>;
  /** Changes what is given; of the filters, all are replaced if one is given. Needs `admin`. */
  changeWebhook(subscriberId: string, change: ChangeWebhook, options?: CallOptions): Promise<Webhook>;
  /** Pauses a webhook; its position is kept. Needs `operate`. */
  pauseWebhook(subscriberId: string, request?: WebhookReason, options?: CallOptions): Promise<Webhook>;
  /** Resumes a webhook, or has one that fails tried now. Needs `operate`. */
  resumeWebhook(subscriberId: string, request?: WebhookReason, options?: CallOptions): Promise<Webhook>;
  /** Delivers everything after a position again, under the same ids. Needs `operate`. */
  replayWebhook(subscriberId: string, request: ReplayWebhook, options?: CallOptions): Promise<Webhook>;
  /** Posts a signed test event now, and returns the receiver's answer. Needs `admin`. */
  testWebhook(subscriberId: string, request?: WebhookReason, options?: CallOptions): Promise<TestedWebhook>;
  /** Begins the next generation of the secret, which is returned only once. Needs `admin`. */
  rotateWebhook(subscriberId: string, request?: RotateWebhook, options?: CallOptions): Promise<NewWebhook>;
  /** Removes a webhook; its position is forgotten. Needs `admin`. */
  removeWebhook(subscriberId: string, options?: CallOptions): Promise<RemovedWebhook>;
  /**
   * Everything that needs an operator, worst first. With `revision` and `wait` (seconds) it resolves when the list has
   * changed.
   */
  attention(query?: AttentionQuery, options?: CallOptions): Promise<Attention>;
  /** The overview as numbers. With `revision` and `wait` (seconds) it resolves when the overview has changed. */
  overview(query?: OverviewQuery, options?: CallOptions): Promise<Overview>;
  /** Search by any id, or by its beginning. */
  search(query: SearchQuery, options?: CallOptions): Promise<SearchResults["items"]>;
  /** A signer's nonces, grouped by what uses them; at most 2,000 per call. */
  nonceRuler(signer: Address, query?: NonceRulerQuery, options?: CallOptions): Promise<NonceRuler>;
  /**
   * Notices, newest first. Each reports either that another program used a signer's key, or that a node vanished. Each
   * shows who acknowledged it.
   */
  notices(query?: NoticesWish, options?: CallOptions): Promise<readonly Notice[]>;
  /**
   * Records that an operator has investigated a notice, and why it needs no further attention. Needs a key with
   * `operate`.
   */
  acknowledge(noticeId: string, request: AcknowledgeOrder, options?: OrderOptions): Promise<Notice>;
  /** Events of nodes, lanes and the database, newest first. */
  clusterHistory(query?: ClusterHistoryQuery, options?: CallOptions): Promise<ClusterHistory>;
  /**
   * Figures over time: transactions created and completed, time to finality, base fee and offers, spend, alerts. Merged
   * over all lanes, or of one signer or chain.
   */
  history(query?: HistoryQuery, options?: CallOptions): Promise<History>;
  /**
   * Fees paid and value moved by the transactions that were created in a range of time, by signer, API key, day or
   * receiver. Reads up to 20,000 transactions; `next` continues after them.
   */
  costs(query?: CostsQuery, options?: CallOptions): Promise<Costs>;
  /** The ABIs by which calls, logs and errors are shown. */
  abis(options?: CallOptions): Promise<Abis>;
  /** Replaces all ABIs, on every node. Needs `admin`. */
  putAbis(request: PutAbis, options?: CallOptions): Promise<Abis>;
  /** The API key of this client, its scopes and limits, and the node that answers. */
  me(options?: CallOptions): Promise<Caller>;
  /** The names of signers, as the node that answers is configured. */
  namedSigners(options?: CallOptions): Promise<SignerNames["items"]>;
  /** Every live node of the cluster. */
  nodes(options?: CallOptions): Promise<readonly ClusterNode[]>;
  /** The owner of each lane; lanes without an owner are left out. */
  leases(options?: CallOptions): Promise<readonly LaneLease[]>;
}

/** How a call is sent: method and path under /api/v1, and its special properties. */
export interface CallPath {
  readonly at: string;
  /** Name of a member that every response to this call has. */
  readonly expects?: string;
  /** The call returns only the member `items` of the response. */
  readonly items?: true;
  /** The call has one argument that contains the query parameters. */
  readonly query?: true;
  /** Call options that are sent as query parameters: the option's name, and the parameter's. */
  readonly options?: Readonly<Record<string, string>>;
  /** "none": the request has no body. Otherwise the call's argument is sent as this member of the body. */
  readonly body?: "none" | "rawTransaction" | "txHash";
  /** A request id is added to the body. */
  readonly named?: true;
  /** The call is sent with an idempotency key: it is performed once, however often it is repeated. */
  readonly keyed?: true;
  /** The call is not idempotent: it is repeated only if a response shows that nothing was done. */
  readonly once?: true;
}

type Short<At> = At extends `${infer Method} /api/v1${infer Path}` ? `${Method} ${Path}` : never;
/** Table of every API call that has a name in the client: a missing call or a different path does not compile. */
export type CallPaths = {
  readonly [C in Extract<DeclaredCall, { readonly face: string }> as C["face"]]: CallPath & {
    readonly at: Short<C["at"]>;
  };
};

const items = { expects: "items", items: true } as const;
const action = <At extends string>(at: At) => ({ at: `post /tx/{txId}/${at}`, expects: "state", keyed: true }) as const;
const ofLane = <At extends string>(at: At) => ({ at: `post /signers/{signer}/${at}`, ...items, keyed: true }) as const;

const ofWebhook = <At extends string>(at: At) =>
  ({ at: `post /webhooks/{subscriberId}/${at}`, expects: "subscriberId" }) as const;

export const CALL_PATHS = {
  ...NONCE_PATHS,
  ...SIGNATURE_PATHS,
  get: { at: "get /tx/{txId}", expects: "state", options: { include: "include" } },
  getByRequest: { at: "get /tx/by-request", expects: "state", query: true, options: { include: "include" } },
  explain: { at: "get /tx/{txId}/explain" },
  list: { at: "get /tx", expects: "items", query: true },
  completionsPage: { at: "get /tx/completions", expects: "items", query: true },
  costs: { at: "get /costs", expects: "items", query: true },
  resubmit: action("resubmit"),
  reprice: action("reprice"),
  cancel: action("cancel"),
  replace: action("replace"),
  resolve: action("resolve"),
  approve: action("approve"),
  reject: action("reject"),
  suspendTransaction: action("suspend"),
  resumeTransaction: action("resume"),
  signersPage: { at: "get /signers", expects: "items", query: true },
  signer: { at: "get /signers/{signer}", ...items, options: { fresh: "fresh" } },
  namedSigners: { at: "get /signer-names", ...items },
  suspend: ofLane("suspend"),
  resume: ofLane("resume"),
  realign: ofLane("realign"),
  checkPolicy: { at: "post /policy/check" },
  policies: { at: "get /policy" },
  applyPolicies: { at: "put /policy" },
  abis: { at: "get /abis", expects: "items" },
  putAbis: { at: "put /abis", expects: "items" },
  policyUsage: { at: "get /policy/usage", query: true },
  keys: { at: "get /keys", ...items },
  addKey: { at: "post /keys", once: true },
  revokeKey: { at: "delete /keys/{name}", once: true, options: { secretId: "secret" } },
  webhooks: { at: "get /webhooks", ...items },
  webhook: { at: "get /webhooks/{subscriberId}", expects: "subscriberId" },
  addWebhook: { at: "post /webhooks", once: true },
  changeWebhook: { at: "put /webhooks/{subscriberId}", expects: "subscriberId" },
  pauseWebhook: ofWebhook("pause"),
  resumeWebhook: ofWebhook("resume"),
  replayWebhook: ofWebhook("replay"),
  testWebhook: { at: "post /webhooks/{subscriberId}/test", expects: "delivered" },
  rotateWebhook: { ...ofWebhook("rotate"), once: true },
  removeWebhook: { at: "delete /webhooks/{subscriberId}", once: true },
  attention: { at: "get /attention", query: true },
  overview: { at: "get /overview", query: true },
  search: { at: "get /search", ...items, query: true },
  nonceRuler: { at: "get /signers/{signer}/nonces", query: true },
  notices: { at: "get /notices", ...items, query: true },
  acknowledge: { at: "post /notices/{noticeId}/acknowledge", expects: "noticeId", keyed: true },
  clusterHistory: { at: "get /cluster/history", query: true },
  history: { at: "get /history", expects: "buckets", query: true },
  nodes: { at: "get /nodes", ...items },
  leases: { at: "get /leases", ...items },
  me: { at: "get /me", expects: "scopes" },
} satisfies CallPaths;
