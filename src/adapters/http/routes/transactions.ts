import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type {
  CompletionsPage as ApiPage,
  CompletionsQuery as ApiQuery,
  FencepostApi,
  Include,
} from "../../../application/api.ts";
import { TRANSACTION_ACTIONS } from "../../../contract/actions.ts";
import { CompletionsPage, CompletionsQuery } from "../../../contract/completions.ts";
import * as contract from "../../../contract/transactions.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { keyOfOrder } from "../idempotency-key.ts";
import { actorOf, answering, type RouteContext, TRANSACTION_LIMIT_BYTES } from "../options.ts";
import { noQuery, queryReader } from "../query.ts";
import { completionsView, explanationView, transactionView } from "../views.ts";

interface ById {
  readonly Params: { readonly txId: string };
}

const readTransactionQuery = queryReader(contract.TransactionQuery);
const readByRequestQuery = queryReader(contract.ByRequestQuery);
const readListQuery = queryReader(contract.TransactionListQuery);
const readCompletionsQuery = queryReader(CompletionsQuery);

/** Transactions that exist: to be read, followed, and acted on. Bodies are validated by the action, which knows its fields. */
export function transactionRoutes(app: FastifyInstance, context: RouteContext): void {
  const { checksum } = context;
  const oneTransaction = answering({ 200: contract.Transaction });

  app.get<ById>("/api/v1/tx/:txId", oneTransaction, async ({ params, query, api }) => {
    const { include } = readTransactionQuery(query);
    return transactionView(await api.transaction(readTxId(params.txId), includes(include)), checksum);
  });

  app.get<ById>("/api/v1/tx/:txId/explain", answering({ 200: contract.Explanation }), async ({ params, api }) =>
    explanationView(await api.explain(readTxId(params.txId))),
  );

  app.get("/api/v1/tx/by-request", oneTransaction, async (request) => {
    const { include, ...query } = readByRequestQuery(request.query);
    if (query.signer === undefined && query.pool === undefined) throw invalid("signer", "is required, or pool");
    return transactionView(await request.api.transactionByRequest(query, includes(include)), checksum);
  });

  app.get("/api/v1/tx", answering({ 200: contract.TransactionPage }), async ({ query, api }) => {
    const { items, next } = await api.transactions(readListQuery(query));
    return { items: items.map((view) => transactionView(view, checksum)), next };
  });

  app.get("/api/v1/tx/completions", answering({ 200: CompletionsPage }), (request, reply) =>
    completions(context, request, reply),
  );

  const decided = { bodyLimit: TRANSACTION_LIMIT_BYTES, ...answering({ 202: contract.Transaction }) };
  for (const action of TRANSACTION_ACTIONS) {
    app.post<ById>(`/api/v1/tx/:txId/${action}`, decided, async (request, reply) => {
      const { params, query, body, principal, api } = request;
      noQuery(query);
      const order = { action, txId: readTxId(params.txId), request: body, actor: actorOf(principal) };
      const view = await api.act({ ...order, ...keyOfOrder(request) });
      reply.code(202).header("location", `/api/v1/tx/${view.txId}`);
      return transactionView(view, checksum);
    });
  }
}

async function completions(context: RouteContext, { api, query: asked }: FastifyRequest, reply: FastifyReply) {
  const { checksum, longPolls } = context;
  const { after = 0, wait = 0, ...rest } = readCompletionsQuery(asked);
  const query: ApiQuery = { after, ...rest };
  if (wait === 0) return completionsView(await api.completions(query), checksum);
  const page = await longPolls.hold(reply.raw, (signal) => {
    return waitForPage(api, { ...query, waitMs: Math.round(wait * 1000), signal });
  });
  if (!reply.raw.destroyed) return completionsView(page ?? (await api.completions(query)), checksum);
  // The caller has hung up: there is no one to answer.
  reply.hijack();
  return undefined;
}

/** Null where the wait was cut short: the caller hung up, or the node stops. A caller still there gets what there is. */
async function waitForPage(api: FencepostApi, query: ApiQuery): Promise<ApiPage | null> {
  if (query.signal?.aborted) return null;
  try {
    return await api.completions(query);
  } catch (error) {
    if (query.signal?.aborted) return null;
    throw error;
  }
}

/** As the database writes them. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Text that is not a UUID names no transaction; the database is not asked to parse it. */
function readTxId(text: string): string {
  const txId = text.toLowerCase();
  if (UUID.test(txId)) return txId;
  throw new FencepostError("NOT_FOUND", "there is no transaction with this id");
}

function includes(include: string | undefined): readonly Include[] {
  return include === undefined ? [] : (include.split(",") as Include[]);
}
