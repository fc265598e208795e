import type { TSchema } from "typebox";
import type { ErrorCode } from "../domain/errors.ts";
import type { Answer, Call } from "./calls/call.ts";
import { GROUPS, type Tag } from "./calls/index.ts";
import * as examples from "./examples/examples.ts";
import * as sights from "./examples/sight-examples.ts";

/** One documented route: a declared call with its examples. A test compares the table with what the server really serves. */
export interface Route extends Pick<Call, "summary" | "description" | "query" | "headers"> {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly tag: Tag;
  /** Needs no API key. */
  readonly open: boolean;
  readonly body?: { readonly schema: TSchema; readonly examples: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<Record<number, RouteResponse>>;
  readonly errors: readonly ErrorCode[];
}

export interface RouteResponse extends Pick<Answer, "description" | "contentType" | "schema"> {
  readonly example?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const SEND = {
  ...{ jsonrpc: "2.0", id: 1, method: "eth_sendTransaction" },
  params: [{ from: examples.signer, to: examples.recipient, value: "0x1", fencepostRequestId: "order-42" }],
};

/** By the title of the schema; the orders by their action. */
const BODY_EXAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  CreateTransaction: examples.creates,
  CreateBatch: { two: examples.batch },
  ReserveNonce: { reserve: examples.reserve },
  SubmitReserved: { signed: examples.handedIn },
  UseReserved: { sent: examples.sentByCaller },
  AddKey: { checkout: examples.asked },
  PolicyCheck: { check: examples.check },
  ApplyPolicies: { apply: examples.changed },
  KillOrder: { stop: examples.killOrder },
  AcknowledgeOrder: { explained: sights.acknowledgeOrder },
  ...{
    ResubmitOrder: examples.orders,
    PricedOrder: examples.orders,
    ReplaceOrder: examples.orders,
    ResolveOrder: examples.orders,
  },
  ...{ ApprovalOrder: examples.orders, HoldOrder: examples.orders },
  ...{ LaneOrder: { lane: examples.orders.lane }, RealignOrder: { lane: examples.orders.lane } },
  JsonRpcCall: { call: SEND, batch: [SEND, { jsonrpc: "2.0", id: 2, method: "eth_chainId", params: [] }] },
};

/** By the title of the schema, or by the name that the call gives. */
const ANSWER_EXAMPLES: Readonly<Record<string, unknown>> = {
  Transaction: examples.transaction,
  cancelling: examples.cancelling,
  CreatedTransaction: examples.created,
  trackedTransaction: examples.trackedTransaction,
  BatchResults: examples.batchResults,
  TransactionPage: examples.transactionPage,
  Explanation: examples.explanation,
  CompletionsPage: examples.feedPage,
  NonceReservation: examples.reserved,
  releasedNonce: examples.released,
  SignerLanes: examples.signerLanes,
  SignersPage: examples.lanesPage,
  ClusterNodes: examples.clusterNodes,
  LaneLeases: examples.laneLeases,
  KillSwitchState: examples.killed,
  unkilled: examples.unkilled,
  Health: { status: "ok", version: "0.1.0" },
  Readiness: examples.ready,
  notReady: examples.notReady,
  Keys: examples.keys,
  NewKey: examples.newKey,
  RevokedKey: examples.revokedKey,
  PolicyVerdict: examples.verdict,
  PoliciesInForce: examples.inForce,
  PolicyUsage: examples.usage,
  JsonRpcAnswer: { jsonrpc: "2.0", id: 1, result: examples.txHash },
  ...sights.ANSWER_EXAMPLES,
};

export const ROUTES: readonly Route[] = GROUPS.flatMap(([tag, calls]) =>
  Object.entries<Call>(calls).map(([operationId, call]) => routeOf(tag, operationId, call)),
);

/** Every route of the API refuses what it cannot read, and a body that is too long for it; of those beside it some take nothing that could be wrong. */
function routeOf(
  tag: Tag,
  operationId: string,
  { at, scope, body, answers, errors = [], action, ...call }: Call,
): Route {
  const [method = "", path = ""] = at.split(" ");
  const ofBodies: readonly ErrorCode[] = body === undefined ? [] : ["PAYLOAD_TOO_LARGE"];
  const always: readonly ErrorCode[] = path.startsWith("/api/") ? ["INVALID_REQUEST", ...ofBodies] : [];
  const { summary, description, query, headers } = call;
  const examples = body && bodyExamples(body, action);
  return {
    ...{ operationId, method, path, tag, open: scope === "open", summary, errors: [...always, ...errors] },
    ...(description && { description }),
    ...(query && { query }),
    ...(headers && { headers }),
    ...(examples && { body: { schema: body, examples } }),
    responses: Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseOf(answer)])),
  };
}

function responseOf({ schema, location, ...answer }: Answer): RouteResponse {
  const example = ANSWER_EXAMPLES[answer.example ?? titleOf(schema) ?? ""];
  return {
    ...answer,
    ...(schema && { schema }),
    ...(example === undefined ? {} : { example }),
    ...(location && { headers: { Location: location.description } }),
  };
}

/** Under the name of the action, if the schema is that of several. */
function bodyExamples(schema: TSchema, action?: string): Readonly<Record<string, unknown>> {
  const examples: Readonly<Record<string, unknown>> = BODY_EXAMPLES[titleOf(schema) ?? ""] ?? {};
  if (action === undefined) return examples;
  return { [action]: examples[action] ?? Object.values(examples)[0] };
}

/** Of a union, the title of its first schema. */
function titleOf(schema: TSchema | undefined): string | undefined {
  const { title, anyOf } = (schema ?? {}) as { readonly title?: string; readonly anyOf?: readonly TSchema[] };
  return title ?? (anyOf === undefined ? undefined : titleOf(anyOf[0]));
}
