import type { FastifyInstance } from "fastify";
import * as contract from "../../../contract/policies.ts";
import { invalid } from "../../../domain/errors.ts";
import { asObject } from "../json-body.ts";
import { actorOf, answering, type RouteContext, TRANSACTION_LIMIT_BYTES } from "../options.ts";
import { noQuery, queryReader } from "../query.ts";
import { policiesView, policyUsageView, policyVerdictView } from "../views.ts";

/** ABIs take most of it. */
const DOCUMENT_LIMIT_BYTES = 1024 * 1024;

/** The policy document, what it would say, and what is used. */
export function policyRoutes(app: FastifyInstance, { checksum }: RouteContext): void {
  const readUsage = queryReader(contract.PolicyUsageQuery);
  const checking = {
    bodyLimit: TRANSACTION_LIMIT_BYTES,
    config: { metered: true as const },
    ...answering({ 200: contract.PolicyVerdict }),
  };

  app.post("/api/v1/policy/check", checking, async ({ body, query, api }): Promise<contract.PolicyVerdict> => {
    noQuery(query);
    const { key, ...request } = asObject(body);
    if (key !== undefined && typeof key !== "string") throw invalid("key", "must be the name of an API key");
    return policyVerdictView(await api.checkPolicy(request, key));
  });

  app.get("/api/v1/policy", answering({ 200: contract.PoliciesInForce }), async ({ query, api }) => {
    noQuery(query);
    return policiesView(await api.policies());
  });

  const applying = { bodyLimit: DOCUMENT_LIMIT_BYTES, ...answering({ 200: contract.PoliciesInForce }) };
  app.put("/api/v1/policy", applying, async ({ body, query, api, principal }) => {
    noQuery(query);
    return policiesView(await api.applyPolicies(body, actorOf(principal)));
  });

  app.get("/api/v1/policy/usage", answering({ 200: contract.PolicyUsage }), async ({ query, api }) =>
    policyUsageView(await api.policyUsage(readUsage(query)), checksum),
  );
}
