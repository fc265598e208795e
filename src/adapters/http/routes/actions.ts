import type { FastifyInstance } from "fastify";
import { LANE_ACTIONS, TRANSACTION_ACTIONS } from "../../../contract/actions.ts";
import { SignerLanes } from "../../../contract/signers.ts";
import { Transaction } from "../../../contract/transactions.ts";
import type { RouteContext } from "../context.ts";
import { noQuery } from "../query.ts";
import { signersView, transactionView } from "../views.ts";
import { readTxId } from "./transactions.ts";

/** As for one transaction: a replacement brings a payload like a create's. */
const ORDER_LIMIT_BYTES = 256 * 1024;

/** What operators may do. The body is validated by the action itself, which knows its fields. */
export function actionRoutes(app: FastifyInstance, { api, checksum, clock }: RouteContext): void {
  const options = { bodyLimit: ORDER_LIMIT_BYTES };

  for (const action of TRANSACTION_ACTIONS) {
    app.post<{ Params: { txId: string } }>(
      `/api/v1/tx/:txId/${action}`,
      { ...options, schema: { response: { 202: Transaction } } },
      async (request, reply) => {
        noQuery(request.query);
        const txId = readTxId(request.params.txId);
        const view = await api.act({ action, txId, request: request.body, actor: actorOf(request.keyName) });
        reply.code(202).header("location", `/api/v1/tx/${view.txId}`);
        return transactionView(view, checksum);
      },
    );
  }

  for (const action of LANE_ACTIONS) {
    app.post<{ Params: { signer: string } }>(
      `/api/v1/signers/:signer/${action}`,
      { ...options, schema: { response: { 200: SignerLanes } } },
      async (request): Promise<SignerLanes> => {
        noQuery(request.query);
        const { signer } = request.params;
        const views = await api.actOnLane({ action, signer, request: request.body, actor: actorOf(request.keyName) });
        return signersView(views, checksum, clock.now());
      },
    );
  }
}

function actorOf(keyName: string): string {
  return `operator:${keyName}`;
}
