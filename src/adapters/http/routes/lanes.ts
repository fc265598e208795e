import type { FastifyInstance } from "fastify";
import { ClusterNodes, LaneLeases } from "../../../contract/cluster.ts";
import { SignerLanes, SignerQuery, SignersPage, SignersQuery } from "../../../contract/signers.ts";
import type { RouteContext } from "../context.ts";
import { noQuery, queryReader } from "../query.ts";
import { leaseView, nodeView, signersView } from "../views.ts";

const readSignersQuery = queryReader(SignersQuery);
const readSignerQuery = queryReader(SignerQuery);

/** Lanes by their signer, who acts for them, and the nodes that could. */
export function laneRoutes(app: FastifyInstance, { api, checksum, clock }: RouteContext): void {
  app.get("/api/v1/signers", { schema: { response: { 200: SignersPage } } }, async (request) => {
    const { items, next } = await api.signers(readSignersQuery(request.query));
    return { ...signersView(items, checksum, clock.now()), next };
  });

  const lanes = { schema: { response: { 200: SignerLanes } } };
  app.get<{ Params: { signer: string } }>("/api/v1/signers/:signer", lanes, async (request) => {
    const { fresh } = readSignerQuery(request.query);
    const views = await api.signer(request.params.signer, { fresh: fresh === "true" });
    return signersView(views, checksum, clock.now());
  });

  app.get("/api/v1/nodes", { schema: { response: { 200: ClusterNodes } } }, async (request) => {
    noQuery(request.query);
    return { items: (await api.nodes()).map(nodeView) };
  });

  app.get("/api/v1/leases", { schema: { response: { 200: LaneLeases } } }, async (request) => {
    noQuery(request.query);
    const leases = await api.leases();
    return { items: leases.flatMap((lease) => leaseView(lease, checksum) ?? []) };
  });
}
