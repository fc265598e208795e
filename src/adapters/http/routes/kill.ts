import type { FastifyInstance } from "fastify";
import { KillSwitchState } from "../../../contract/kill.ts";
import { actorOf, answering, type RouteContext } from "../options.ts";
import { noQuery } from "../query.ts";
import { killView } from "../views.ts";

const ROUTES = ["/api/v1/kill", "/api/v1/signers/:signer/kill"] as const;

/** Stops one signer or everything, and ends that. To order it asks for `operate` or `admin`, to end it for `admin` alone. */
export function killRoutes(app: FastifyInstance, { checksum }: RouteContext): void {
  const options = { config: { urgent: true as const }, ...answering({ 200: KillSwitchState, 202: KillSwitchState }) };
  for (const path of ROUTES) {
    for (const method of ["POST", "DELETE"] as const) {
      app.route<{ Params: { readonly signer?: string } }>({
        method,
        url: path,
        ...options,
        handler: async ({ params, query, body, api, principal }, reply) => {
          noQuery(query);
          const order = { signer: params.signer ?? null, request: body, actor: actorOf(principal) };
          const answer = await (method === "POST" ? api.kill(order) : api.endKill(order));
          // An end is durable when it is answered; the other orders may not be yet.
          reply.code(answer.durable || method === "DELETE" ? 200 : 202);
          return killView(answer, checksum);
        },
      });
    }
  }
}
