import type { TObject, TSchema } from "typebox";
import type { ErrorCode } from "../domain/errors.ts";
import { actionRoutes } from "./action-routes.ts";
import { BatchResults, CreateBatch } from "./batch.ts";
import { ClusterNodes, LaneLeases } from "./cluster.ts";
import { CompletionsPage, CompletionsQuery } from "./completions.ts";
import { CreatedTransaction, CreateTransaction } from "./create.ts";
import * as examples from "./examples.ts";
import { Explanation } from "./explain.ts";
import { Health, Readiness, ReadinessQuery } from "./health.ts";
import { nonceRoutes } from "./nonce-routes.ts";
import { Address, TxId } from "./scalars.ts";
import { SignerLanes, SignerQuery, SignersPage, SignersQuery } from "./signers.ts";
import {
  ByRequestQuery,
  Transaction,
  TransactionListQuery,
  TransactionPage,
  TransactionQuery,
} from "./transactions.ts";

/** One documented route. `path` is OpenAPI's notation; a test compares the table with what the server really serves. */
export interface Route {
  readonly operationId: string;
  readonly method: "get" | "post";
  readonly path: string;
  readonly tag: "Transactions" | "Nonces" | "Completions" | "Signers" | "Cluster" | "Operations";
  readonly summary: string;
  readonly description?: string;
  /** Needs no API key. */
  readonly open?: true;
  readonly params?: Readonly<Record<string, TSchema>>;
  readonly query?: TObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: { readonly schema: TSchema; readonly examples: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<Record<number, RouteResponse>>;
  readonly errors: readonly ErrorCode[];
}

export interface RouteResponse {
  readonly description: string;
  readonly contentType?: string;
  readonly schema?: TSchema;
  readonly example?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const CREATE_ERRORS: readonly ErrorCode[] = [
  "INVALID_REQUEST",
  "NOT_LEADER",
  "REQUEST_ID_REUSED",
  "PAYLOAD_TOO_LARGE",
  "UNKNOWN_SIGNER",
  "UNKNOWN_CHAIN",
  "SUBMISSION_REJECTED",
  "QUEUE_FULL",
];

const LOCATION = { Location: "Path of the transaction." };

const transactionRoutes: readonly Route[] = [
  {
    operationId: "createTransaction",
    method: "post",
    path: "/api/v1/tx",
    tag: "Transactions",
    summary: "Send a transaction",
    description:
      "Answers once the intent is durable and owns its nonce. Repeat it with the same requestId as often as you like: there will be one transaction. Up to 256 KiB.",
    headers: { "Idempotency-Key": "Alias of requestId; where both are given they must be equal." },
    body: { schema: CreateTransaction, examples: examples.creates },
    responses: {
      202: {
        description: "Accepted: durable, and on its way to finality.",
        schema: CreatedTransaction,
        example: examples.created,
        headers: LOCATION,
      },
      200: {
        description: "The same request had been accepted before; this is its transaction.",
        schema: CreatedTransaction,
        example: examples.created,
        headers: LOCATION,
      },
    },
    errors: CREATE_ERRORS,
  },
  {
    operationId: "createTransactions",
    method: "post",
    path: "/api/v1/tx/batch",
    tag: "Transactions",
    summary: "Send up to 1,000 transactions",
    description:
      "Every item has an answer of its own; a bad one does not fail the others. Up to 256 KiB an item, 8 MiB in all.",
    body: { schema: CreateBatch, examples: { two: examples.batch } },
    responses: {
      200: { description: "One result per item, in order.", schema: BatchResults, example: examples.batchResults },
    },
    errors: ["INVALID_REQUEST", "PAYLOAD_TOO_LARGE"],
  },
  {
    operationId: "getTransaction",
    method: "get",
    path: "/api/v1/tx/{txId}",
    tag: "Transactions",
    summary: "Read a transaction",
    params: { txId: TxId },
    query: TransactionQuery,
    responses: { 200: { description: "The transaction.", schema: Transaction, example: examples.transaction } },
    errors: ["INVALID_REQUEST", "NOT_FOUND"],
  },
  {
    operationId: "explainTransaction",
    method: "get",
    path: "/api/v1/tx/{txId}/explain",
    tag: "Transactions",
    summary: "Why it is not final yet, and what would help",
    params: { txId: TxId },
    responses: { 200: { description: "In plain words.", schema: Explanation, example: examples.explanation } },
    errors: ["INVALID_REQUEST", "NOT_FOUND"],
  },
  {
    operationId: "getTransactionByRequest",
    method: "get",
    path: "/api/v1/tx/by-request",
    tag: "Transactions",
    summary: "Read a transaction by the caller's own id",
    query: ByRequestQuery,
    responses: { 200: { description: "The transaction.", schema: Transaction, example: examples.transaction } },
    errors: ["INVALID_REQUEST", "NOT_FOUND", "UNKNOWN_CHAIN"],
  },
  {
    operationId: "listTransactions",
    method: "get",
    path: "/api/v1/tx",
    tag: "Transactions",
    summary: "List transactions",
    description: "Pages by an opaque cursor: hand `next` back as `after` until it is null.",
    query: TransactionListQuery,
    responses: { 200: { description: "One page.", schema: TransactionPage, example: examples.transactionPage } },
    errors: ["INVALID_REQUEST"],
  },
];

const otherApiRoutes: readonly Route[] = [
  {
    operationId: "listCompletions",
    method: "get",
    path: "/api/v1/tx/completions",
    tag: "Completions",
    summary: "Follow final outcomes in order",
    description:
      "Ask with `after` = the last `next`; with `wait` the answer is held until there is something. Never misses one, never reorders.",
    query: CompletionsQuery,
    responses: { 200: { description: "One page.", schema: CompletionsPage, example: examples.completionsPage } },
    errors: ["INVALID_REQUEST", "EPOCH_CHANGED", "FEED_TRUNCATED"],
  },
  {
    operationId: "listSigners",
    method: "get",
    path: "/api/v1/signers",
    tag: "Signers",
    summary: "List every signer's lanes",
    query: SignersQuery,
    responses: { 200: { description: "Also those never used.", schema: SignersPage, example: examples.signersPage } },
    errors: ["INVALID_REQUEST"],
  },
  {
    operationId: "getSigner",
    method: "get",
    path: "/api/v1/signers/{signer}",
    tag: "Signers",
    summary: "Read one signer's lanes",
    params: { signer: Address },
    query: SignerQuery,
    responses: { 200: { description: "One item per chain.", schema: SignerLanes, example: examples.signerLanes } },
    errors: ["INVALID_REQUEST", "UNKNOWN_SIGNER"],
  },
];

const clusterRoutes: readonly Route[] = [
  {
    operationId: "listNodes",
    method: "get",
    path: "/api/v1/nodes",
    tag: "Cluster",
    summary: "List the nodes that are alive",
    responses: { 200: { description: "Oldest first.", schema: ClusterNodes, example: examples.clusterNodes } },
    errors: ["INVALID_REQUEST"],
  },
  {
    operationId: "listLeases",
    method: "get",
    path: "/api/v1/leases",
    tag: "Cluster",
    summary: "List who acts for which lane",
    responses: { 200: { description: "Lanes that have an owner.", schema: LaneLeases, example: examples.laneLeases } },
    errors: ["INVALID_REQUEST"],
  },
];

const operationsRoutes: readonly Route[] = [
  {
    operationId: "getHealth",
    method: "get",
    path: "/healthz",
    tag: "Operations",
    summary: "Is the process alive",
    open: true,
    responses: { 200: { description: "It is.", schema: Health, example: { status: "ok", version: "0.1.0" } } },
    errors: [],
  },
  {
    operationId: "getReadiness",
    method: "get",
    path: "/readyz",
    tag: "Operations",
    summary: "Should this node get traffic",
    open: true,
    query: ReadinessQuery,
    responses: {
      200: { description: "Ready.", schema: Readiness, example: examples.ready },
      503: { description: "Not ready; says which part.", schema: Readiness, example: examples.notReady },
    },
    errors: ["INVALID_REQUEST", "UNKNOWN_CHAIN"],
  },
  {
    operationId: "getMetrics",
    method: "get",
    path: "/metrics",
    tag: "Operations",
    summary: "Prometheus metrics",
    responses: { 200: { description: "Text exposition format.", contentType: "text/plain" } },
    errors: [],
  },
  {
    operationId: "getOpenApi",
    method: "get",
    path: "/openapi.json",
    tag: "Operations",
    summary: "This document",
    open: true,
    responses: { 200: { description: "OpenAPI 3.1.", contentType: "application/json" } },
    errors: [],
  },
  {
    operationId: "getDocs",
    method: "get",
    path: "/docs",
    tag: "Operations",
    summary: "This reference, to browse",
    open: true,
    responses: { 200: { description: "HTML.", contentType: "text/html" } },
    errors: [],
  },
];

export const ROUTES: readonly Route[] = [
  ...transactionRoutes,
  ...nonceRoutes,
  ...otherApiRoutes,
  ...actionRoutes,
  ...clusterRoutes,
  ...operationsRoutes,
];
