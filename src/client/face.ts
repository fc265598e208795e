import type { ClusterNode, KillOrder, KillSwitchState, LaneLease } from "../contract/calls/cluster.ts";
import type { DeclaredCall } from "../contract/calls/index.ts";
import type { AddKey, Keys, NewKey, RevokedKey } from "../contract/calls/keys.ts";
import type {
  ApplyPolicies,
  PoliciesInForce,
  PolicyCheck,
  PolicyUsage,
  PolicyVerdict,
} from "../contract/calls/policies.ts";
import type * as actions from "../contract/schemas/actions.ts";
import type { Attention, AttentionQuery } from "../contract/schemas/attention.ts";
import type { ClusterHistory, ClusterHistoryQuery } from "../contract/schemas/cluster-history.ts";
import type { CompletionsPage, CompletionsQuery } from "../contract/schemas/completions.ts";
import type { NonceRuler, NonceRulerQuery } from "../contract/schemas/nonce-ruler.ts";
import type { AcknowledgeOrder, Notice, NoticesQuery } from "../contract/schemas/notice.ts";
import type { Overview, OverviewQuery } from "../contract/schemas/overview.ts";
import type { SearchQuery, SearchResults } from "../contract/schemas/search.ts";
import type { SignerLane, SignersPage, SignersQuery } from "../contract/schemas/signers.ts";
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
import type { SentTransaction } from "./sent-transaction.ts";
import { NONCE_PATHS, type NonceCalls } from "./with-nonce.ts";

/** With "logs" the node asks the chain. */
export type Include = "history" | "confirmations" | "logs";
export type ReadOptions = CallOptions & { readonly include?: readonly Include[] };

/** A request id, with the signer or the pool that the request named. */
export type RequestName = ({ readonly signer: string } | { readonly pool: string }) & {
  readonly requestId: string;
  readonly chainId?: number;
};

/** Filter of notices. `open`: only those that are not acknowledged and not over. */
export type NoticesWish = NoticesQuery;
export type KillWish = KillOrder & { readonly signer?: string };

/**
 * Fencepost's calls, whether the node is in this process (`createFencepost`) or elsewhere (`createClient`): the same
 * types, the same answers, the same errors. Every call takes `signal` and `timeoutMs`.
 */
export interface FencepostFace<SendOptions extends CallOptions = CallOptions> extends NonceCalls {
  /**
   * Resolves once the intent is durable. Without a requestId it gets a UUID as one. With an ABI that the compiler knows
   * (`as const`), `function` and `args` are checked against it.
   */
  send<const A extends SomeAbi = SomeAbi, F extends FunctionOf<A> = FunctionOf<A>>(
    intent: TransactionIntent<A, F>,
    options?: SendOptions,
  ): Promise<SentTransaction>;
  /** Any number at once. One result for each, in order: a bad one is an error in its place, and fails no other. */
  sendMany(
    intents: readonly TransactionIntent[],
    options?: SendOptions,
  ): Promise<readonly (SentTransaction | FencepostError)[]>;
  /** The handle of a transaction that was sent before. */
  handle(txId: string, options?: CallOptions): Promise<SentTransaction>;
  get(txId: string, options?: ReadOptions): Promise<Transaction>;
  getByRequest(request: RequestName, options?: ReadOptions): Promise<Transaction>;
  /** Why it is not final yet, in plain words, and what would help. */
  explain(txId: string, options?: CallOptions): Promise<Explanation>;
  list(query?: TransactionListQuery, options?: CallOptions): Promise<TransactionPage>;
  /** One page of the feed. */
  completionsPage(query?: CompletionsQuery, options?: CallOptions): Promise<CompletionsPage>;
  /**
   * The feed from `after` on, for ever, one item at a time. With a `store` the place is kept there, and neither a lost
   * connection nor a new epoch ends it. Without one, keep `seq` and `feedEpoch` of what you have dealt with yourself.
   */
  completions(query?: FollowQuery, options?: CallOptions): AsyncGenerator<FollowedCompletion, void, undefined>;
  /** Resolves when the transaction is CONFIRMED or FAILED_FINAL. A STUCK one may still move, and is waited for. */
  waitFor(txId: string, options?: WaitOptions): Promise<Transaction>;
  /** Every lane, read page by page. */
  signers(options?: CallOptions): Promise<readonly SignerLane[]>;
  signersPage(query?: SignersQuery, options?: CallOptions): Promise<SignersPage>;
  /** One item per chain. With `fresh` the node asks the chain instead of using its latest values. */
  signer(address: string, options?: CallOptions & { readonly fresh?: boolean }): Promise<readonly SignerLane[]>;
  /** Sends the stored bytes again, now. This and the four below answer with the transaction; CONFLICT says what was mined. */
  resubmit(txId: string, order: actions.ResubmitOrder, options?: OrderOptions): Promise<Transaction>;
  /** Signs the same payload for more: the market's price, or the fees given. */
  reprice(txId: string, order: actions.PricedOrder, options?: OrderOptions): Promise<Transaction>;
  /** Uses the nonce up with nothing. The original may still be mined first: then it is CONFIRMED. */
  cancel(txId: string, order: actions.PricedOrder, options?: OrderOptions): Promise<Transaction>;
  /** Puts another payload at the nonce. */
  replace<const A extends SomeAbi = SomeAbi, F extends FunctionOf<A> = FunctionOf<A>>(
    txId: string,
    order: TypedReplaceOrder<A, F>,
    options?: OrderOptions,
  ): Promise<Transaction>;
  /** Asks the hook now, or applies the action given. */
  resolve(txId: string, order: actions.ResolveOrder, options?: OrderOptions): Promise<Transaction>;
  /** Lets a transaction that waits for approval have its nonce. Takes a key with `approve` that did not make it, as below. */
  approve(txId: string, order: actions.ApprovalOrder, options?: OrderOptions): Promise<Transaction>;
  /** Refuses it: FAILED_FINAL/REJECTED, without a nonce. */
  reject(txId: string, order: actions.ApprovalOrder, options?: OrderOptions): Promise<Transaction>;
  /** Holds this one transaction back, and not its lane: nothing of it is sent until it is resumed. What a node has may still be mined. */
  suspendTransaction(txId: string, order: actions.HoldOrder, options?: OrderOptions): Promise<Transaction>;
  resumeTransaction(txId: string, order: actions.HoldOrder, options?: OrderOptions): Promise<Transaction>;
  /** The policies' verdict on this transaction now, and its charge. Nothing is done. */
  checkPolicy(check: PolicyCheck, options?: CallOptions): Promise<PolicyVerdict>;
  /** The document that is in force on every node, and who put it there. */
  policies(options?: CallOptions): Promise<PoliciesInForce>;
  /** Another one for every node, obeyed from the moment that this resolves; takes `admin`. Once, however often it is repeated. */
  applyPolicies(request: ApplyPolicies, options?: CallOptions): Promise<PoliciesInForce>;
  /** Use of limits in this hour and day: of all, or of one key or signer. */
  policyUsage(query?: { readonly key?: string; readonly signer?: string }, options?: CallOptions): Promise<PolicyUsage>;
  /** Creates are accepted and wait; nothing is sent. */
  suspend(signer: string, order: actions.LaneOrder, options?: OrderOptions): Promise<readonly SignerLane[]>;
  resume(signer: string, order: actions.LaneOrder, options?: OrderOptions): Promise<readonly SignerLane[]>;
  /** Lowers a cursor that an endpoint's false answers pushed too far; the answer shows how far it was lowered. */
  realign(signer: string, order: actions.RealignOrder, options?: OrderOptions): Promise<readonly SignerLane[]>;
  /** Stops one signer, or everything, on all nodes: nothing is sent until it is ended. Look at `durable` and `nodes`. */
  kill(order?: KillWish, options?: CallOptions): Promise<KillSwitchState>;
  /** Ends that; resolves once it is durable. */
  endKill(order?: KillWish, options?: CallOptions): Promise<KillSwitchState>;
  /** API keys of the database. Takes a key with `admin`, as the two below. */
  keys(options?: CallOptions): Promise<readonly Keys["items"][number][]>;
  /** A new key, or a second secret of one on the same terms. The secret is returned only once. */
  addKey(key: AddKey, options?: CallOptions): Promise<NewKey>;
  /** The key as a whole, or one of its secrets. */
  revokeKey(name: string, options?: CallOptions & { readonly secretId?: string }): Promise<RevokedKey>;
  /**
   * Everything that needs a person, worst first. With `revision` and `wait` (seconds) it resolves when the list has
   * changed.
   */
  attention(query?: AttentionQuery, options?: CallOptions): Promise<Attention>;
  /** Everything in figures; held in the same way. */
  overview(query?: OverviewQuery, options?: CallOptions): Promise<Overview>;
  /** Search by any id, or by its beginning. */
  search(query: SearchQuery, options?: CallOptions): Promise<SearchResults["items"]>;
  /** A signer's nonces by what holds them, at most 2,000 at once. */
  nonceRuler(signer: string, query?: NonceRulerQuery, options?: CallOptions): Promise<NonceRuler>;
  /** Uses of keys that were not sent from here, and nodes that vanished, with who acknowledged each; newest first. */
  notices(query?: NoticesWish, options?: CallOptions): Promise<readonly Notice[]>;
  /** Records that a notice was looked into, and why it needs no further attention. Needs a key with `operate`. */
  acknowledge(noticeId: string, order: AcknowledgeOrder, options?: OrderOptions): Promise<Notice>;
  /** Events of nodes, lanes and the database. */
  clusterHistory(query?: ClusterHistoryQuery, options?: CallOptions): Promise<ClusterHistory>;
  /** Every node that is alive; each of them knows all others. */
  nodes(options?: CallOptions): Promise<readonly ClusterNode[]>;
  /** Which node acts for which lane; lanes without an owner are left out. */
  leases(options?: CallOptions): Promise<readonly LaneLease[]>;
}

/** How a call is asked for: method and path under /api/v1, and what it has that others have not. */
export interface CallPath {
  readonly at: string;
  /** The member that every answer to it has. */
  readonly expects?: string;
  /** Its result is the `items` of the answer. */
  readonly items?: true;
  /** An argument of its own has the parameters of the query. */
  readonly query?: true;
  /** Options that are parameters of the query, by their names there. */
  readonly options?: Readonly<Record<string, string>>;
  /** No argument has its body; or the argument is this member of it. */
  readonly body?: "none" | "rawTransaction" | "txHash";
  /** Its body gets a request id. */
  readonly named?: true;
  /** Goes with an idempotency key: done once, however often it is asked for. */
  readonly keyed?: true;
  /** Done twice, it would be two things: repeated only if an answer says that nothing was done. */
  readonly once?: true;
}

type Short<At> = At extends `${infer Method} /api/v1${infer Path}` ? `${Method} ${Path}` : never;
/** Every call of the API that has a name here: one that is missing in the table, or has another path, does not compile. */
export type CallPaths = {
  readonly [C in Extract<DeclaredCall, { readonly face: string }> as C["face"]]: CallPath & {
    readonly at: Short<C["at"]>;
  };
};

const order = { expects: "state", keyed: true } as const;
const ofLane = { expects: "items", items: true, keyed: true } as const;
const items = { expects: "items", items: true } as const;

export const CALL_PATHS = {
  ...NONCE_PATHS,
  get: { at: "get /tx/{txId}", expects: "state", options: { include: "include" } },
  getByRequest: { at: "get /tx/by-request", expects: "state", query: true, options: { include: "include" } },
  explain: { at: "get /tx/{txId}/explain" },
  list: { at: "get /tx", expects: "items", query: true },
  completionsPage: { at: "get /tx/completions", expects: "items", query: true },
  resubmit: { at: "post /tx/{txId}/resubmit", ...order },
  reprice: { at: "post /tx/{txId}/reprice", ...order },
  cancel: { at: "post /tx/{txId}/cancel", ...order },
  replace: { at: "post /tx/{txId}/replace", ...order },
  resolve: { at: "post /tx/{txId}/resolve", ...order },
  approve: { at: "post /tx/{txId}/approve", ...order },
  reject: { at: "post /tx/{txId}/reject", ...order },
  suspendTransaction: { at: "post /tx/{txId}/suspend", ...order },
  resumeTransaction: { at: "post /tx/{txId}/resume", ...order },
  signersPage: { at: "get /signers", expects: "items", query: true },
  signer: { at: "get /signers/{signer}", ...items, options: { fresh: "fresh" } },
  suspend: { at: "post /signers/{signer}/suspend", ...ofLane },
  resume: { at: "post /signers/{signer}/resume", ...ofLane },
  realign: { at: "post /signers/{signer}/realign", ...ofLane },
  checkPolicy: { at: "post /policy/check" },
  policies: { at: "get /policy" },
  applyPolicies: { at: "put /policy" },
  policyUsage: { at: "get /policy/usage", query: true },
  keys: { at: "get /keys", ...items },
  addKey: { at: "post /keys", once: true },
  revokeKey: { at: "delete /keys/{name}", once: true, options: { secretId: "secret" } },
  attention: { at: "get /attention", query: true },
  overview: { at: "get /overview", query: true },
  search: { at: "get /search", ...items, query: true },
  nonceRuler: { at: "get /signers/{signer}/nonces", query: true },
  notices: { at: "get /notices", ...items, query: true },
  acknowledge: { at: "post /notices/{noticeId}/acknowledge", expects: "noticeId", keyed: true },
  clusterHistory: { at: "get /cluster/history", query: true },
  nodes: { at: "get /nodes", ...items },
  leases: { at: "get /leases", ...items },
} satisfies CallPaths;
