import type { FastifyInstance } from "fastify";
import type { SignerView } from "../../../application/api.ts";
import { SignerLanes, SignerQuery, SignersPage, SignersQuery } from "../../../contract/signers.ts";
import type { RouteContext } from "../context.ts";
import { queryReader } from "../query.ts";
import { signerView } from "../views.ts";

const readSignersQuery = queryReader(SignersQuery);
const readSignerQuery = queryReader(SignerQuery);

export function signerRoutes(app: FastifyInstance, { api, checksum, clock }: RouteContext): void {
  const answer = (views: readonly SignerView[]): SignerLanes => {
    const now = clock.now();
    return { items: views.map((view) => signerView(view, checksum, now)) };
  };

  app.get("/api/v1/signers", { schema: { response: { 200: SignersPage } } }, async (request) => {
    const { items, next } = await api.signers(readSignersQuery(request.query));
    return { ...answer(items), next };
  });

  const lanes = { schema: { response: { 200: SignerLanes } } };
  app.get<{ Params: { signer: string } }>("/api/v1/signers/:signer", lanes, async (request) => {
    const { fresh } = readSignerQuery(request.query);
    return answer(await api.signer(request.params.signer, { fresh: fresh === "true" }));
  });
}
