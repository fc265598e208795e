import type { TObject, TSchema } from "typebox";
import type { ErrorCode } from "../domain/errors.ts";
import { laneActions, transactionActions } from "./action-routes.ts";
import { ClusterNodes, Health, LaneLeases, Readiness, ReadinessQuery } from "./cluster.ts";
import { CompletionsPage, CompletionsQuery } from "./completions.ts";
import { BatchResults, CreateBatch, CreatedTransaction, CreateTransaction } from "./create.ts";
import * as examples from "./examples.ts";
import { jsonRpcRoutes } from "./json-rpc.ts";
import { AddKey, Keys, NewKey, RevokedKey, RevokeQuery } from "./keys.ts";
import { KillOrder, KillSwitchState } from "./kill.ts";
import { NonceReservation, ReserveNonce, SubmitReserved, UseReserved } from "./nonces.ts";
import { policyRoutes } from "./policy-routes.ts";
import { sightRoutes } from "./sight-routes.ts";
import { SignerLanes, SignerQuery, SignersPage, SignersQuery } from "./signers.ts";
import {
  ByRequestQuery,
  Explanation,
  Transaction,
  TransactionListQuery,
  TransactionPage,
  TransactionQuery,
} from "./transactions.ts";

/** A route as it is written down: `at` is method and path in OpenAPI's notation, its name the key it stands under. */
export interface WrittenRoute {
  readonly at: `${"get" | "post" | "put" | "delete"} /${string}`;
  readonly summary: string;
  readonly description?: string;
  /** Needs no API key. */
  readonly open?: true;
  readonly query?: TObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly schema: TSchema; readonly examples: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<Record<number, RouteResponse>>;
  /** Besides what every route of the API may answer. */
  readonly errors?: readonly ErrorCode[];
}

export interface RouteResponse {
  readonly description: string;
  readonly contentType?: string;
  readonly schema?: TSchema;
  readonly example?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** One documented route; a test compares the table with what the server really serves. */
export interface Route extends WrittenRoute {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly tag:
    | "Transactions"
    | "Nonces"
    | "JSON-RPC"
    | "Completions"
    | "Signers"
    | "Policies"
    | "Keys"
    | "Cluster"
    | "Sight"
    | "Operations";
  readonly errors: readonly ErrorCode[];
}

type Written = Readonly<Record<string, WrittenRoute>>;

const LOCATION = { Location: "Path of the transaction." };
const oneTransaction = { description: "The transaction.", schema: Transaction, example: examples.transaction };
const created = { schema: CreatedTransaction, example: examples.created, headers: LOCATION };

const transactions: Written = {
  createTransaction: {
    at: "post /api/v1/tx",
    summary: "Send a transaction",
    description:
      "Answers once the intent is durable and owns its nonce. Repeat it with the same requestId as often as you like: there will be one transaction. Up to 256 KiB.",
    headers: { "Idempotency-Key": "Alias of requestId; where both are given they must be equal." },
    body: { schema: CreateTransaction, examples: examples.creates },
    responses: {
      202: { description: "Accepted: durable, and on its way to finality.", ...created },
      200: { description: "The same request had been accepted before; this is its transaction.", ...created },
    },
    errors: [
      "NOT_LEADER",
      "CONFLICT",
      "REQUEST_ID_REUSED",
      "UNKNOWN_SIGNER",
      "UNKNOWN_CHAIN",
      "SUBMISSION_REJECTED",
      "QUEUE_FULL",
    ],
  },
  createTransactions: {
    at: "post /api/v1/tx/batch",
    summary: "Send up to 1,000 transactions",
    description:
      "Every item has an answer of its own; a bad one does not fail the others. Up to 256 KiB an item, 8 MiB in all.",
    body: { schema: CreateBatch, examples: { two: examples.batch } },
    responses: {
      200: { description: "One result per item, in order.", schema: BatchResults, example: examples.batchResults },
    },
  },
  getTransaction: {
    at: "get /api/v1/tx/{txId}",
    summary: "Read a transaction",
    query: TransactionQuery,
    responses: { 200: oneTransaction },
    errors: ["NOT_FOUND"],
  },
  explainTransaction: {
    at: "get /api/v1/tx/{txId}/explain",
    summary: "Why it is not final yet, and what would help",
    responses: { 200: { description: "In plain words.", schema: Explanation, example: examples.explanation } },
    errors: ["NOT_FOUND"],
  },
  getTransactionByRequest: {
    at: "get /api/v1/tx/by-request",
    summary: "Read a transaction by the caller's own id",
    query: ByRequestQuery,
    responses: { 200: oneTransaction },
    errors: ["NOT_FOUND", "UNKNOWN_CHAIN"],
  },
  listTransactions: {
    at: "get /api/v1/tx",
    summary: "List transactions",
    description: "Pages by an opaque cursor: hand `next` back as `after` until it is null.",
    query: TransactionListQuery,
    responses: { 200: { description: "One page.", schema: TransactionPage, example: examples.transactionPage } },
  },
};

const reserved = {
  schema: NonceReservation,
  example: examples.nonceReservation,
  headers: { Location: "Path of the reservation." },
};
const tracked = { schema: CreatedTransaction, example: examples.trackedTransaction, headers: LOCATION };

const nonces: Written = {
  reserveNonce: {
    at: "post /api/v1/nonces",
    summary: "Reserve a nonce to sign with yourself",
    description:
      "Kept until `expiresAt`; then hand in what you signed, name the hash you sent, or release it. Only a release makes the nonce free again. Repeat it with the same requestId as often as you like: there will be one reservation.",
    body: { schema: ReserveNonce, examples: { reserve: examples.reserveNonce } },
    responses: {
      201: { description: "Reserved.", ...reserved },
      200: {
        description: "The same request had reserved before; this is its reservation, in whatever state.",
        ...reserved,
      },
    },
    errors: ["NOT_LEADER", "QUOTA_EXCEEDED", "REQUEST_ID_REUSED", "UNKNOWN_SIGNER", "UNKNOWN_CHAIN"],
  },
  getReservation: {
    at: "get /api/v1/nonces/{reservationId}",
    summary: "Read a reservation",
    responses: { 200: { description: "It.", schema: NonceReservation, example: examples.nonceReservation } },
    errors: ["NOT_FOUND"],
  },
  submitReserved: {
    at: "post /api/v1/nonces/{reservationId}/submit",
    summary: "Hand in what you signed",
    description: "From there it is a transaction like any other: stored, sent, sent again and followed to finality.",
    body: { schema: SubmitReserved, examples: { signed: examples.submitReserved } },
    responses: { 202: { description: "Accepted.", ...tracked } },
    errors: ["NOT_FOUND", "NOT_LEADER", "CONFLICT", "SUBMISSION_REJECTED"],
  },
  useReserved: {
    at: "post /api/v1/nonces/{reservationId}/used",
    summary: "Name the transaction you sent yourself",
    description: "It is followed by its hash; it cannot be sent again from here.",
    body: { schema: UseReserved, examples: { sent: examples.useReserved } },
    responses: { 202: { description: "Followed.", ...tracked } },
    errors: ["NOT_FOUND", "NOT_LEADER", "CONFLICT", "SUBMISSION_REJECTED"],
  },
  releaseReserved: {
    at: "post /api/v1/nonces/{reservationId}/release",
    summary: "Give the nonce back: nothing was signed with it",
    responses: { 200: { description: "Released.", schema: NonceReservation, example: examples.releasedNonce } },
    errors: ["NOT_FOUND", "NOT_LEADER", "CONFLICT"],
  },
};

const completions: Written = {
  listCompletions: {
    at: "get /api/v1/tx/completions",
    summary: "Follow final outcomes in order",
    description:
      "Ask with `after` = the last `next`; with `wait` the answer is held until there is something. Never misses one, never reorders.",
    query: CompletionsQuery,
    responses: { 200: { description: "One page.", schema: CompletionsPage, example: examples.completionsPage } },
    errors: ["EPOCH_CHANGED", "FEED_TRUNCATED"],
  },
};

const signers: Written = {
  listSigners: {
    at: "get /api/v1/signers",
    summary: "List every signer's lanes",
    query: SignersQuery,
    responses: { 200: { description: "Also those never used.", schema: SignersPage, example: examples.signersPage } },
  },
  getSigner: {
    at: "get /api/v1/signers/{signer}",
    summary: "Read one signer's lanes",
    query: SignerQuery,
    responses: { 200: { description: "One item per chain.", schema: SignerLanes, example: examples.signerLanes } },
    errors: ["UNKNOWN_SIGNER"],
  },
};

const keys: Written = {
  listKeys: {
    at: "get /api/v1/keys",
    summary: "List the API keys of the database",
    responses: { 200: { description: "Without their secrets.", schema: Keys, example: examples.keys } },
  },
  addKey: {
    at: "post /api/v1/keys",
    summary: "Make an API key, or its second secret",
    description:
      "Of a key that exists on the same terms, a second secret: both are valid until one is revoked. Known to every node within a second.",
    body: { schema: AddKey, examples: { checkout: examples.addKey } },
    responses: { 201: { description: "The secret is told this once.", schema: NewKey, example: examples.newKey } },
    errors: ["CONFLICT"],
  },
  revokeKey: {
    at: "delete /api/v1/keys/{name}",
    summary: "Revoke an API key, or one of its secrets",
    description: "Refused by every node within a second. Keys of the configuration are not among these.",
    query: RevokeQuery,
    responses: {
      200: { description: "Revoked: the secret, or all of it.", schema: RevokedKey, example: examples.revokedKey },
    },
    errors: ["NOT_FOUND"],
  },
};

const cluster: Written = {
  listNodes: {
    at: "get /api/v1/nodes",
    summary: "List the nodes that are alive",
    responses: { 200: { description: "Oldest first.", schema: ClusterNodes, example: examples.clusterNodes } },
  },
  listLeases: {
    at: "get /api/v1/leases",
    summary: "List who acts for which lane",
    responses: { 200: { description: "Lanes that have an owner.", schema: LaneLeases, example: examples.laneLeases } },
  },
};

const killOrder = { schema: KillOrder, examples: { stop: examples.killOrder } };
const killed = { schema: KillSwitchState, example: examples.killed };
const kill = {
  description:
    "Needs `operate` or `admin`. Nothing is sent from any node until this is ended: no first send, no repeat, no new price; creates are accepted and wait. The node that is asked stops at once, writes the order down, and tells the others; each stops within a second that it or the database can be reached from. What a node is sending at that moment may still arrive.",
  body: killOrder,
  responses: {
    200: { description: "In force, and durable.", ...killed },
    202: { description: "In force, not durable yet (`durable: false`): that is tried until it is.", ...killed },
  },
};
const endKill = {
  description: "Needs `admin`. Answers once the end is durable; the other nodes go on within a second.",
  body: killOrder,
  responses: {
    200: {
      description: "Ended; `kills` has what is still in force.",
      schema: KillSwitchState,
      example: examples.unkilled,
    },
  },
};

const killSwitch: Written = {
  killEverything: { at: "post /api/v1/kill", summary: "Stop everything, on all nodes", ...kill },
  endKillOfEverything: { at: "delete /api/v1/kill", summary: "End the order to stop everything", ...endKill },
  killSigner: {
    at: "post /api/v1/signers/{signer}/kill",
    summary: "Stop one signer, on all nodes and chains",
    ...kill,
  },
  endKillOfSigner: {
    at: "delete /api/v1/signers/{signer}/kill",
    summary: "End the order to stop one signer",
    ...endKill,
  },
};

const operations: Written = {
  getHealth: {
    at: "get /healthz",
    summary: "Is the process alive",
    open: true,
    responses: { 200: { description: "It is.", schema: Health, example: { status: "ok", version: "0.1.0" } } },
  },
  getReadiness: {
    at: "get /readyz",
    summary: "Should this node get traffic",
    open: true,
    query: ReadinessQuery,
    responses: {
      200: { description: "Ready.", schema: Readiness, example: examples.ready },
      503: { description: "Not ready; says which part.", schema: Readiness, example: examples.notReady },
    },
    errors: ["INVALID_REQUEST", "UNKNOWN_CHAIN"],
  },
  getMetrics: {
    at: "get /metrics",
    summary: "Prometheus metrics",
    responses: { 200: { description: "Text exposition format.", contentType: "text/plain" } },
  },
  getOpenApi: {
    at: "get /openapi.json",
    summary: "This document",
    open: true,
    responses: { 200: { description: "OpenAPI 3.1.", contentType: "application/json" } },
    errors: ["FORBIDDEN"],
  },
  getDocs: {
    at: "get /docs",
    summary: "This reference, to browse",
    open: true,
    responses: { 200: { description: "HTML.", contentType: "text/html" } },
    errors: ["FORBIDDEN"],
  },
};

export const ROUTES: readonly Route[] = [
  ...tagged("Transactions", transactions),
  ...tagged("Nonces", nonces),
  ...tagged("JSON-RPC", jsonRpcRoutes),
  ...tagged("Completions", completions),
  ...tagged("Signers", signers),
  ...tagged("Transactions", transactionActions),
  ...tagged("Signers", laneActions),
  ...tagged("Keys", keys),
  ...tagged("Policies", policyRoutes),
  ...tagged("Cluster", cluster),
  ...tagged("Cluster", killSwitch),
  ...tagged("Sight", sightRoutes),
  ...tagged("Operations", operations),
];

/** Every route of the API refuses what it cannot read, and a body that is too long for it; of those beside it some take nothing that could be wrong. */
function tagged(tag: Route["tag"], routes: Written): readonly Route[] {
  return Object.entries(routes).map(([operationId, route]) => {
    const [method = "", path = ""] = route.at.split(" ");
    const ofBodies: readonly ErrorCode[] = route.body === undefined ? [] : ["PAYLOAD_TOO_LARGE"];
    const always: readonly ErrorCode[] = path.startsWith("/api/") ? ["INVALID_REQUEST", ...ofBodies] : [];
    return { ...route, operationId, method, path, tag, errors: [...always, ...(route.errors ?? [])] };
  });
}
