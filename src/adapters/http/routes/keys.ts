import type { FastifyInstance } from "fastify";
import { Keys, NewKey, RevokedKey, RevokeQuery } from "../../../contract/keys.ts";
import { asObject } from "../json-body.ts";
import { actorOf, answering, type RouteContext } from "../options.ts";
import { noQuery, queryReader } from "../query.ts";
import { keysView, keyTermsView } from "../views.ts";

const readRevokeQuery = queryReader(RevokeQuery);

export function keyRoutes(app: FastifyInstance, { checksum }: RouteContext): void {
  app.get("/api/v1/keys", answering({ 200: Keys }), async ({ query, api }) => {
    noQuery(query);
    return keysView(await api.keys(), checksum);
  });

  app.post("/api/v1/keys", answering({ 201: NewKey }), async ({ query, body, api, principal }, reply) => {
    noQuery(query);
    const { secret, secretId, ...terms } = await api.addKey(asObject(body), actorOf(principal));
    reply.code(201).header("cache-control", "no-store");
    return { ...keyTermsView(terms, checksum), secret, secretId };
  });

  const revoked = answering({ 200: RevokedKey });
  app.delete<{ Params: { readonly name: string } }>("/api/v1/keys/:name", revoked, async (request) => {
    const { secret: secretId = null } = readRevokeQuery(request.query);
    const { name } = request.params;
    await request.api.revokeKey(name, secretId, actorOf(request.principal));
    return { name, secretId };
  });
}
