import type * as actions from "../contract/actions.ts";
import type { ClusterNode, LaneLease } from "../contract/cluster.ts";
import type { CompletionsPage, CompletionsQuery } from "../contract/completions.ts";
import type { BatchResults, CreatedTransaction, CreateTransaction } from "../contract/create.ts";
import type { AddKey, Keys, NewKey, RevokedKey } from "../contract/keys.ts";
import type { KillOrder, KillSwitchState } from "../contract/kill.ts";
import type { NonceReservation, ReserveNonce } from "../contract/nonces.ts";
import type { PoliciesInForce, PolicyCheck, PolicyUsage, PolicyVerdict } from "../contract/policies.ts";
import type { SignerLane, SignersPage, SignersQuery } from "../contract/signers.ts";
import type { Explanation, Transaction, TransactionListQuery, TransactionPage } from "../contract/transactions.ts";
import { type FollowedCompletion, followCompletions, type WaitOptions, waitForSettled } from "./follow.ts";
import { type Call, type CallOptions, type ClientOptions, createTransport } from "./transport.ts";
import { type UsesNonce, withNonce } from "./with-nonce.ts";

export type {
  ApprovalOrder,
  HoldOrder,
  LaneOrder,
  PricedOrder,
  RealignOrder,
  ReplaceOrder,
  ResolveOrder,
  ResubmitOrder,
} from "../contract/actions.ts";
export type { ClusterNode, LaneLease } from "../contract/cluster.ts";
export type { Completion, CompletionsPage, CompletionsQuery } from "../contract/completions.ts";
export type { BatchResults, CreatedTransaction, CreateTransaction } from "../contract/create.ts";
export type { AddKey, Keys, NewKey, RevokedKey } from "../contract/keys.ts";
export type { KillOrder, KillSwitchState } from "../contract/kill.ts";
export type { NonceReservation, ReserveNonce } from "../contract/nonces.ts";
export type { PoliciesInForce, PolicyCheck, PolicyUsage, PolicyVerdict } from "../contract/policies.ts";
export type { Problem } from "../contract/problem.ts";
export type { SignerLane, SignersPage, SignersQuery } from "../contract/signers.ts";
export type { Explanation, Transaction, TransactionListQuery, TransactionPage } from "../contract/transactions.ts";
export { type ClientErrorCode, FencepostApiError } from "./api-error.ts";
export type { FollowedCompletion, WaitOptions } from "./follow.ts";
export type { CallOptions, ClientOptions } from "./transport.ts";
export { type NonceUse, neverSent, type UsesNonce } from "./with-nonce.ts";

export type Include = "history" | "confirmations";
export type ReadOptions = CallOptions & { readonly include?: readonly Include[] };

/** A node over HTTP. Nothing is retried and nothing is kept: every call is one request. Failures are FencepostApiErrors. */
export interface FencepostClient {
  /** Resolves once the intent is durable. Give a requestId: then a repeat after any failure is safe. */
  send(transaction: CreateTransaction, options?: CallOptions): Promise<CreatedTransaction>;
  /** One result per transaction, in order; look at each `status`. */
  sendBatch(transactions: readonly CreateTransaction[], options?: CallOptions): Promise<BatchResults["results"]>;
  get(txId: string, options?: ReadOptions): Promise<Transaction>;
  getByRequest(request: RequestName, options?: ReadOptions): Promise<Transaction>;
  /** Why it is not final yet, in plain words, and what would help. */
  explain(txId: string, options?: CallOptions): Promise<Explanation>;
  list(query?: TransactionListQuery, options?: CallOptions): Promise<TransactionPage>;
  /** One page of the feed. */
  completionsPage(query?: CompletionsQuery, options?: CallOptions): Promise<CompletionsPage>;
  /**
   * The feed from `after` on, for ever, one item at a time. Keep `seq` and `feedEpoch` of what you have dealt with; after a
   * failure begin again from there. EPOCH_CHANGED tells the new epoch and `resumeAfter` in its problem.
   */
  completions(query?: CompletionsQuery, options?: CallOptions): AsyncGenerator<FollowedCompletion>;
  /** Resolves when the transaction is CONFIRMED or FAILED_FINAL. A STUCK one may still move, and is waited for. */
  waitFor(txId: string, options?: WaitOptions): Promise<Transaction>;
  /** Keeps a nonce for you to sign with. Give a requestId: then a repeat after any failure is safe. */
  reserveNonce(lane: ReserveNonce, options?: CallOptions): Promise<NonceReservation>;
  reservation(reservationId: string, options?: CallOptions): Promise<NonceReservation>;
  submitReserved(reservationId: string, rawTransaction: string, options?: CallOptions): Promise<CreatedTransaction>;
  markUsed(reservationId: string, txHash: string, options?: CallOptions): Promise<CreatedTransaction>;
  /** Only if nothing was signed with it. */
  releaseNonce(reservationId: string, options?: CallOptions): Promise<NonceReservation>;
  /**
   * Reserves a nonce, lets the callback use it, and reports what it did. The callback returns `{ rawTransaction }`,
   * `{ txHash }` or `neverSent()`; where it throws, nothing is released. Null where nothing was sent.
   */
  withNonce(lane: ReserveNonce, callback: UsesNonce): Promise<CreatedTransaction | null>;
  /** Every lane, read page by page. */
  signers(options?: CallOptions): Promise<readonly SignerLane[]>;
  signersPage(query?: SignersQuery, options?: CallOptions): Promise<SignersPage>;
  /** One item per chain. `fresh` has the node ask the chain, instead of telling what it last heard. */
  signer(address: string, options?: CallOptions & { readonly fresh?: boolean }): Promise<readonly SignerLane[]>;
  /** Sends the stored bytes again, now. This and the four below answer with the transaction; CONFLICT says what was mined. */
  resubmit(txId: string, order: actions.ResubmitOrder, options?: CallOptions): Promise<Transaction>;
  /** Signs the same payload for more. */
  reprice(txId: string, order: actions.PricedOrder, options?: CallOptions): Promise<Transaction>;
  /** Uses the nonce up with nothing. The original may still be mined first: then it is CONFIRMED. */
  cancel(txId: string, order: actions.PricedOrder, options?: CallOptions): Promise<Transaction>;
  /** Puts another payload at the nonce. */
  replace(txId: string, order: actions.ReplaceOrder, options?: CallOptions): Promise<Transaction>;
  /** Asks the hook now, or applies the action given. */
  resolve(txId: string, order: actions.ResolveOrder, options?: CallOptions): Promise<Transaction>;
  /** Lets a transaction that waits for approval have its nonce. Takes a key with `approve` that did not make it, as below. */
  approve(txId: string, order: actions.ApprovalOrder, options?: CallOptions): Promise<Transaction>;
  /** Refuses it: FAILED_FINAL/REJECTED, without a nonce. */
  reject(txId: string, order: actions.ApprovalOrder, options?: CallOptions): Promise<Transaction>;
  /** Holds this one transaction back, and not its lane: nothing of it is sent until it is resumed. What a node has may still be mined. */
  suspendTransaction(txId: string, order: actions.HoldOrder, options?: CallOptions): Promise<Transaction>;
  resumeTransaction(txId: string, order: actions.HoldOrder, options?: CallOptions): Promise<Transaction>;
  /** What policies would say to this transaction now, and what it would be charged. Nothing is done. */
  checkPolicy(check: PolicyCheck, options?: CallOptions): Promise<PolicyVerdict>;
  /** What is in force on the node that answers. */
  policies(options?: CallOptions): Promise<PoliciesInForce>;
  /** What is used of this hour and day: of everybody, or of one key or signer. */
  policyUsage(query?: { readonly key?: string; readonly signer?: string }, options?: CallOptions): Promise<PolicyUsage>;
  /** Creates are accepted and wait; nothing is sent. */
  suspend(signer: string, order: actions.LaneOrder, options?: CallOptions): Promise<readonly SignerLane[]>;
  resume(signer: string, order: actions.LaneOrder, options?: CallOptions): Promise<readonly SignerLane[]>;
  /** Lowers a cursor that a lying endpoint pushed too far; the answer shows how far it went. */
  realign(signer: string, order: actions.RealignOrder, options?: CallOptions): Promise<readonly SignerLane[]>;
  /** Stops one signer, or everything, on all nodes: nothing is sent until it is ended. Look at `durable` and `nodes`. */
  kill(order?: KillOrder & { readonly signer?: string }, options?: CallOptions): Promise<KillSwitchState>;
  /** Ends that; resolves once it is durable. */
  endKill(order?: KillOrder & { readonly signer?: string }, options?: CallOptions): Promise<KillSwitchState>;
  /** API keys of the database. Takes a key with `admin`, as the two below. */
  keys(options?: CallOptions): Promise<readonly Keys["items"][number][]>;
  /** A new key, or a second secret of one on the same terms. The secret is told this once. */
  addKey(key: AddKey, options?: CallOptions): Promise<NewKey>;
  /** The key as a whole, or one of its secrets. */
  revokeKey(name: string, options?: CallOptions & { readonly secretId?: string }): Promise<RevokedKey>;
  /** Every node that is alive; each of them knows all others. */
  nodes(options?: CallOptions): Promise<readonly ClusterNode[]>;
  /** Which node acts for which lane; lanes without an owner are left out. */
  leases(options?: CallOptions): Promise<readonly LaneLease[]>;
}

const LARGEST_PAGE = 500;

export interface RequestName {
  readonly signer: string;
  readonly requestId: string;
  readonly chainId?: number;
}

export function createClient(options: ClientOptions): FencepostClient {
  const transport = createTransport(options);
  const post = <T>(path: string, body: unknown, call?: CallOptions) => transport<T>({ path, body, ...call });
  const items = async <T>(call: Call) => (await transport<{ readonly items: readonly T[] }>(call)).items;
  const act = (action: actions.TransactionAction) => (txId: string, body: object, call?: CallOptions) =>
    post<Transaction>(`${transactionPath(txId)}/${action}`, body, call);
  const onLane = (action: actions.LaneAction) => (signer: string, body: object, call?: CallOptions) =>
    items<SignerLane>({ path: `${signerPath(signer)}/${action}`, body, ...call });
  const client: FencepostClient = {
    send: (transaction, call) => post("/tx", transaction, call),
    sendBatch: async (transactions, call) => (await post<BatchResults>("/tx/batch", { transactions }, call)).results,
    get: (txId, { include, ...call } = {}) =>
      transport({ path: transactionPath(txId), query: includes(include), ...call }),
    getByRequest: ({ signer, requestId, chainId }, { include, ...call } = {}) =>
      transport({ path: "/tx/by-request", query: { signer, requestId, chainId, ...includes(include) }, ...call }),
    explain: (txId, call) => transport({ path: `${transactionPath(txId)}/explain`, ...call }),
    list: (query = {}, call) => transport({ path: "/tx", query, ...call }),
    completionsPage: (query = {}, call) => transport({ path: "/tx/completions", query, ...call }),
    completions: (query = {}, call = {}) => followCompletions(client.completionsPage, query, call),
    waitFor: (txId, wait = {}) => waitForSettled(client.get, txId, wait),
    reserveNonce: (lane, call) => post("/nonces", lane, call),
    reservation: (id, call) => transport({ path: noncePath(id), ...call }),
    submitReserved: (id, rawTransaction, call) => post(`${noncePath(id)}/submit`, { rawTransaction }, call),
    markUsed: (id, txHash, call) => post(`${noncePath(id)}/used`, { txHash }, call),
    releaseNonce: (id, call) => post(`${noncePath(id)}/release`, {}, call),
    withNonce: (lane, callback) => withNonce(client, lane, callback),
    signersPage: (query = {}, call) => transport({ path: "/signers", query, ...call }),
    signers: (call) => everySigner(client.signersPage, call),
    signer: (address, { fresh, ...call } = {}) =>
      items({ path: signerPath(address), query: fresh === true ? { fresh: "true" } : {}, ...call }),
    resubmit: act("resubmit"),
    reprice: act("reprice"),
    cancel: act("cancel"),
    replace: act("replace"),
    resolve: act("resolve"),
    approve: act("approve"),
    reject: act("reject"),
    suspendTransaction: act("suspend"),
    resumeTransaction: act("resume"),
    checkPolicy: (check, call) => post("/policy/check", check, call),
    policies: (call) => transport({ path: "/policy", ...call }),
    policyUsage: (query = {}, call) => transport({ path: "/policy/usage", query, ...call }),
    suspend: onLane("suspend"),
    resume: onLane("resume"),
    realign: onLane("realign"),
    kill: ({ signer, ...body } = {}, call) => transport({ path: killPath(signer), body, ...call }),
    endKill: ({ signer, ...body } = {}, call) => transport({ path: killPath(signer), body, method: "DELETE", ...call }),
    keys: (call) => items({ path: "/keys", ...call }),
    addKey: (key, call) => post("/keys", key, call),
    revokeKey: (name, { secretId: secret, ...call } = {}) =>
      transport({ method: "DELETE", path: `/keys/${encodeURIComponent(name)}`, query: { secret }, ...call }),
    nodes: (call) => items({ path: "/nodes", ...call }),
    leases: (call) => items({ path: "/leases", ...call }),
  };
  return client;
}

const transactionPath = (txId: string) => `/tx/${encodeURIComponent(txId)}`;
const signerPath = (address: string) => `/signers/${encodeURIComponent(address)}`;
const killPath = (signer: string | undefined) => (signer === undefined ? "/kill" : `${signerPath(signer)}/kill`);
const noncePath = (reservationId: string) => `/nonces/${encodeURIComponent(reservationId)}`;

async function everySigner(readPage: FencepostClient["signersPage"], call: CallOptions | undefined) {
  const lanes: SignerLane[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await readPage({ limit: LARGEST_PAGE, ...(after === undefined ? {} : { after }) }, call);
    lanes.push(...page.items);
    // A server without pages sends no `next`: there is no more.
    after = page.next ?? null;
  }
  return lanes;
}

function includes(include: readonly Include[] | undefined): { readonly include?: string } {
  return include === undefined || include.length === 0 ? {} : { include: include.join(",") };
}
