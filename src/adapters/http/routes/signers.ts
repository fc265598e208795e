import type { FastifyInstance } from "fastify";
import type { SignerView } from "../../../application/api.ts";
import { SignerLanes } from "../../../contract/signers.ts";
import type { RouteContext } from "../context.ts";
import { noQuery } from "../query.ts";
import { signerView } from "../views.ts";

export function signerRoutes(app: FastifyInstance, { api, checksum, clock }: RouteContext): void {
  const lanes = { schema: { response: { 200: SignerLanes } } };
  const answer = (views: readonly SignerView[]): SignerLanes => {
    const now = clock.now();
    return { items: views.map((view) => signerView(view, checksum, now)) };
  };

  app.get("/api/v1/signers", lanes, async (request) => {
    noQuery(request.query);
    return answer(await api.signers());
  });

  app.get<{ Params: { signer: string } }>("/api/v1/signers/:signer", lanes, async (request) => {
    noQuery(request.query);
    return answer(await api.signer(request.params.signer));
  });
}
