import type { LaneAction, TransactionAction } from "../contract/actions.ts";
import type { BatchResults, CreatedTransaction } from "../contract/create.ts";
import type { NonceReservation } from "../contract/nonces.ts";
import type { Notice, Notices } from "../contract/notice.ts";
import type { SearchResults } from "../contract/search.ts";
import type { SignerLane, SignerLanes } from "../contract/signers.ts";
import type { Transaction } from "../contract/transactions.ts";
import type { TransactionIntent } from "../contract/typed-payload.ts";
import { type CallOptions, newRequestId, type OrderOptions } from "./deadline.ts";
import { FencepostError, ofRequest } from "./error-classes.ts";
import type { FencepostFace, Include } from "./face.ts";
import { followCompletions, isSettled, lookUntil } from "./follow.ts";
import { sendMany } from "./send-many.ts";
import { SentTransaction } from "./sent-transaction.ts";
import { type Call, type ClientOptions, createTransport, DEFAULT_TIMEOUT_MS, type Transport } from "./transport.ts";
import { withNonce } from "./with-nonce.ts";

export type {
  ApprovalOrder,
  HoldOrder,
  LaneOrder,
  PricedOrder,
  RealignOrder,
  ResolveOrder,
  ResubmitOrder,
} from "../contract/actions.ts";
export type { Attention, AttentionItem, AttentionQuery } from "../contract/attention.ts";
export type { ClusterNode, LaneLease } from "../contract/cluster.ts";
export type { ClusterHistory, ClusterHistoryQuery } from "../contract/cluster-history.ts";
export type { Completion, CompletionsPage, CompletionsQuery } from "../contract/completions.ts";
export type { BatchResults, CreatedTransaction } from "../contract/create.ts";
export type { AddKey, Keys, NewKey, RevokedKey } from "../contract/keys.ts";
export type { KillOrder, KillSwitchState } from "../contract/kill.ts";
export type { NonceRuler, NonceRulerQuery } from "../contract/nonce-ruler.ts";
export type { NonceReservation, ReserveNonce } from "../contract/nonces.ts";
export type { AcknowledgeOrder, Notice } from "../contract/notice.ts";
export type { Overview, OverviewQuery } from "../contract/overview.ts";
export type { ApplyPolicies, PoliciesInForce, PolicyCheck, PolicyUsage, PolicyVerdict } from "../contract/policies.ts";
export type { Problem } from "../contract/problem.ts";
export type { SearchQuery, SearchResults } from "../contract/search.ts";
export type { SignerLane, SignersPage, SignersQuery } from "../contract/signers.ts";
export type { Explanation, Transaction, TransactionListQuery, TransactionPage } from "../contract/transactions.ts";
export type {
  TransactionIntent as CreateTransaction,
  TypedReplaceOrder as ReplaceOrder,
} from "../contract/typed-payload.ts";
export type { CallOptions, OrderOptions } from "./deadline.ts";
export type { FencepostFace, Include, KillWish, NoticesWish, ReadOptions, RequestName } from "./face.ts";
export type { FeedPlace, FeedStore, FollowedCompletion, FollowQuery, WaitOptions } from "./follow.ts";
export * from "./public-errors.ts";
export { SentTransaction } from "./sent-transaction.ts";
export type { ClientOptions } from "./transport.ts";
export { type NonceUse, neverSent, type UsesNonce } from "./with-nonce.ts";

/**
 * A node over HTTP, or several. What is safe to repeat is repeated within the time of the call: reads, and whatever carries a
 * request id or an idempotency key, which the SDK makes where you give none.
 */
export interface FencepostClient extends FencepostFace {
  /** One request, and the results as they came; look at each `status`. `sendMany` takes any number, and makes handles. */
  sendBatch(transactions: readonly TransactionIntent[], options?: CallOptions): Promise<BatchResults["results"]>;
}

const LARGEST_PAGE = 500;

export function createClient(options: ClientOptions): FencepostClient {
  const transport = createTransport(options);
  const reading = { ...readingCalls(transport), ...sightCalls(transport) };
  const face = { ...makingCalls(transport), ...reading, ...operatorsCalls(transport) };
  const client: FencepostClient = {
    ...face,
    send: async (intent, call) => {
      const item = withRequestId(intent);
      const made = transport<CreatedTransaction>({
        path: "/tx",
        tells: "txId",
        body: item,
        lane: laneOf(item),
        ...call,
      });
      return new SentTransaction(client, await made.catch(rethrowOf(item)));
    },
    sendMany: async (intents, call = {}) => {
      const limits = { timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS, ...call };
      const results = await sendMany(face.sendBatch, intents.map(withRequestId), limits);
      return results.map((each) => (each instanceof FencepostError ? each : new SentTransaction(client, each)));
    },
    handle: async (txId, call) => new SentTransaction(client, await client.get(txId, call)),
    waitFor: (txId, wait = {}) => lookUntil(client.get, txId, wait, isSettled),
    withNonce: (lane, callback) => withNonce(client, lane, callback),
  };
  return client;
}

interface Asked {
  readonly requestId?: string;
  /** An address, or the pool that chooses one. */
  readonly signer?: unknown;
  readonly chainId?: number;
}

/** What is not even an object is the node's to refuse. */
const withRequestId = <T extends Asked>(asked: T): T & { readonly requestId: string } =>
  asked && { ...asked, requestId: asked.requestId ?? newRequestId() };

const laneOf = (asked: Asked) => `${asked?.chainId ?? ""}${JSON.stringify(asked?.signer)}`.toLowerCase();

/** A caller who gave no request id needs the one that was made. */
const rethrowOf = (asked: Asked) => (error: unknown) => {
  throw error instanceof FencepostError ? ofRequest(error, asked?.requestId) : error;
};

/** What takes a nonce, or gives it back. */
function makingCalls(transport: Transport) {
  return {
    sendBatch: async (transactions, call) => {
      const body = { transactions: transactions.map(withRequestId) };
      return (await transport<BatchResults>({ path: "/tx/batch", tells: "results", body, ...call })).results;
    },
    reserveNonce: (lane, call) => {
      const body = withRequestId(lane);
      const asked = { path: "/nonces", tells: "nonce", body, lane: laneOf(body), ...call };
      return transport<NonceReservation>(asked).catch(rethrowOf(body));
    },
    // Twice is CONFLICT: after silence the caller looks at the reservation.
    submitReserved: (id, rawTransaction, call) =>
      transport({ path: `${noncePath(id)}/submit`, body: { rawTransaction }, once: true, ...call }),
    markUsed: (id, txHash, call) => transport({ path: `${noncePath(id)}/used`, body: { txHash }, once: true, ...call }),
    releaseNonce: (id, call) => transport({ path: `${noncePath(id)}/release`, body: {}, once: true, ...call }),
  } satisfies Partial<FencepostClient>;
}

function readingCalls(transport: Transport) {
  const items = async <T>(call: Call) =>
    (await transport<{ readonly items: readonly T[] }>({ tells: "items", ...call })).items;
  const completionsPage: FencepostClient["completionsPage"] = (query = {}, call) =>
    transport({ path: "/tx/completions", tells: "items", query, heldMs: (query.wait ?? 0) * 1000, ...call });
  const signersPage: FencepostClient["signersPage"] = (query = {}, call) =>
    transport({ path: "/signers", tells: "items", query, ...call });
  return {
    get: (txId, { include, ...call } = {}) =>
      transport({ path: transactionPath(txId), tells: "state", query: includes(include), ...call }),
    getByRequest: (name, { include, ...call } = {}) =>
      transport({ path: "/tx/by-request", tells: "state", query: { ...name, ...includes(include) }, ...call }),
    explain: (txId, call) => transport({ path: `${transactionPath(txId)}/explain`, ...call }),
    list: (query = {}, call) => transport({ path: "/tx", tells: "items", query, ...call }),
    completionsPage,
    completions: (query = {}, call = {}) => followCompletions(completionsPage, query, call),
    reservation: (id, call) => transport({ path: noncePath(id), ...call }),
    signersPage,
    signers: (call) => everySigner(signersPage, call),
    signer: (address, { fresh, ...call } = {}) =>
      items({ path: signerPath(address), query: fresh === true ? { fresh: "true" } : {}, ...call }),
    checkPolicy: (check, call) => transport({ path: "/policy/check", body: check, ...call }),
    policies: (call) => transport({ path: "/policy", ...call }),
    policyUsage: (query = {}, call) => transport({ path: "/policy/usage", query, ...call }),
    keys: (call) => items({ path: "/keys", ...call }),
    nodes: (call) => items({ path: "/nodes", ...call }),
    leases: (call) => items({ path: "/leases", ...call }),
  } satisfies Partial<FencepostClient>;
}

function sightCalls(transport: Transport) {
  const heldMs = ({ wait = 0 }: { readonly wait?: number }) => wait * 1000;
  return {
    attention: (query = {}, call) => transport({ path: "/attention", query, heldMs: heldMs(query), ...call }),
    overview: (query = {}, call) => transport({ path: "/overview", query, heldMs: heldMs(query), ...call }),
    search: async (query, call) =>
      (await transport<SearchResults>({ path: "/search", tells: "items", query, ...call })).items,
    nonceRuler: (signer, query = {}, call) => transport({ path: `${signerPath(signer)}/nonces`, query, ...call }),
    notices: async ({ open, ...query } = {}, call) => {
      const asked = { ...query, ...(open === true && { open: "true" }) };
      return (await transport<Notices>({ path: "/notices", tells: "items", query: asked, ...call })).items;
    },
    clusterHistory: (query = {}, call) => transport({ path: "/cluster/history", query, ...call }),
  } satisfies Partial<FencepostClient>;
}

/** Under a key of its own each is done once, however often it is asked for. */
function operatorsCalls(transport: Transport) {
  const order = <T>(call: Call) => transport<T>({ idempotencyKey: newRequestId(), ...call });
  const act = (action: TransactionAction) => (txId: string, body: object, call?: OrderOptions) =>
    order<Transaction>({ path: `${transactionPath(txId)}/${action}`, tells: "state", body, ...call });
  const onLane = (action: LaneAction) => async (signer: string, body: object, call?: OrderOptions) =>
    (await order<SignerLanes>({ path: `${signerPath(signer)}/${action}`, tells: "items", body, ...call })).items;
  return {
    resubmit: act("resubmit"),
    reprice: act("reprice"),
    cancel: act("cancel"),
    replace: act("replace"),
    resolve: act("resolve"),
    approve: act("approve"),
    reject: act("reject"),
    suspendTransaction: act("suspend"),
    resumeTransaction: act("resume"),
    suspend: onLane("suspend"),
    resume: onLane("resume"),
    realign: onLane("realign"),
    acknowledge: (noticeId, body, call) =>
      order<Notice>({ path: `/notices/${encodeURIComponent(noticeId)}/acknowledge`, tells: "noticeId", body, ...call }),
    kill: ({ signer, ...body } = {}, call) => order({ path: killPath(signer), body, ...call }),
    endKill: ({ signer, ...body } = {}, call) => order({ path: killPath(signer), body, method: "DELETE", ...call }),
    applyPolicies: (body, call) => transport({ path: "/policy", method: "PUT", body, ...call }),
    addKey: (key, call) => transport({ path: "/keys", body: key, once: true, ...call }),
    revokeKey: (name, { secretId: secret, ...call } = {}) =>
      transport({
        method: "DELETE",
        path: `/keys/${encodeURIComponent(name)}`,
        query: { secret },
        once: true,
        ...call,
      }),
  } satisfies Partial<FencepostClient>;
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
