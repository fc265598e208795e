import type { FastifyInstance } from "fastify";
import { ClusterNodes, LaneLeases } from "../../../contract/cluster.ts";
import type { RouteContext } from "../context.ts";
import { noQuery } from "../query.ts";
import { leaseView, nodeView } from "../views.ts";

export function clusterRoutes(app: FastifyInstance, { api, checksum }: RouteContext): void {
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
