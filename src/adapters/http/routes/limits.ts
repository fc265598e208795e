import type { FastifyInstance } from "fastify";
import type { UsedView } from "../../../application/api.ts";
import * as contract from "../../../contract/policies.ts";
import { invalid } from "../../../domain/errors.ts";
import { asObject } from "../json-body.ts";
import { answering, type RouteContext, TRANSACTION_LIMIT_BYTES } from "../options.ts";
import { noQuery, queryReader } from "../query.ts";

/** What policies would say, what is in force, what is used. */
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
    const { value, cost, ...verdict } = await api.checkPolicy(request, key);
    return { ...verdict, value: `${value}`, cost: `${cost}` };
  });

  app.get("/api/v1/policy", answering({ 200: contract.PoliciesInForce }), async ({ query, api }) => {
    noQuery(query);
    return api.policies();
  });

  app.get("/api/v1/policy/usage", answering({ 200: contract.PolicyUsage }), async ({ query, api }) => {
    const { at, signers, keys } = await api.policyUsage(readUsage(query));
    return {
      at: at.toISOString(),
      signers: signers.map(({ lane: { chainId, signer }, ...used }) => {
        return { chainId, signer: checksum(signer), ...usedView(used) };
      }),
      keys: keys.map(({ chainId, key, ...used }) => ({ chainId, key, ...usedView(used) })),
    };
  });
}

function usedView({ since, hour, day }: UsedView) {
  const digits = (wei: bigint | null) => (wei === null ? null : wei.toString());
  const window = ({ value, cost, maxValue, maxCost }: UsedView["hour"]) => {
    return { value: `${value}`, cost: `${cost}`, maxValue: digits(maxValue), maxCost: digits(maxCost) };
  };
  return { since: since.toISOString(), hour: window(hour), day: window(day) };
}
