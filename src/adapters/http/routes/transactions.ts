import type { FastifyInstance } from "fastify";
import type { Include } from "../../../application/api.ts";
import {
  ByRequestQuery,
  Explanation,
  Transaction,
  TransactionListQuery,
  TransactionPage,
  TransactionQuery,
} from "../../../contract/transactions.ts";
import { FencepostError } from "../../../domain/errors.ts";
import type { RouteContext } from "../context.ts";
import { queryReader } from "../query.ts";
import { explanationView, transactionView } from "../views.ts";

const readTransactionQuery = queryReader(TransactionQuery);
const readByRequestQuery = queryReader(ByRequestQuery);
const readListQuery = queryReader(TransactionListQuery);

export function transactionRoutes(app: FastifyInstance, { api, checksum }: RouteContext): void {
  const oneTransaction = { schema: { response: { 200: Transaction } } };

  app.get<{ Params: { txId: string } }>("/api/v1/tx/:txId", oneTransaction, async (request) => {
    const { include } = readTransactionQuery(request.query);
    const view = await api.transaction(readTxId(request.params.txId), includes(include));
    return transactionView(view, checksum);
  });

  app.get<{ Params: { txId: string } }>(
    "/api/v1/tx/:txId/explain",
    { schema: { response: { 200: Explanation } } },
    async (request) => explanationView(await api.explain(readTxId(request.params.txId))),
  );

  app.get("/api/v1/tx/by-request", oneTransaction, async (request) => {
    const { include, ...query } = readByRequestQuery(request.query);
    const view = await api.transactionByRequest(query, includes(include));
    return transactionView(view, checksum);
  });

  app.get("/api/v1/tx", { schema: { response: { 200: TransactionPage } } }, async (request) => {
    const page = await api.transactions(readListQuery(request.query));
    return { items: page.items.map((view) => transactionView(view, checksum)), next: page.next };
  });
}

/** As the database writes them. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What is not a UUID names no transaction; the database is not asked to parse it. */
export function readTxId(text: string): string {
  const txId = text.toLowerCase();
  if (UUID.test(txId)) return txId;
  throw new FencepostError("NOT_FOUND", "there is no transaction with this id");
}

function includes(include: string | undefined): readonly Include[] {
  return include === undefined ? [] : (include.split(",") as Include[]);
}
